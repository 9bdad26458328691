"""The `Connector` port: where documents come from. One connector a source type; each yields what it finds."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.core.errors import AgentError
from agent.knowledge.models import ConnectorInput, ConnectorOutput, FileType, SourceType


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document of a source. `source` tells it from all others (a path, a URL, `gdrive:<id>`) and stays the same when
    its content changes; `name` is what people see; `file_type` None where nobody here reads it.

    `output` is None for a document that has not changed since `version`, which is whatever the source itself tells
    contents apart by (an ETag, a revision); empty where it has nothing of the kind."""

    source: str
    name: str
    file_type: FileType | None
    output: ConnectorOutput | None
    version: str = ""
    url: str | None = None
    total: int | None = None
    """How many documents there are, as far as is known by now; None where only the end of the walk will tell."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A document that could not be had; the walk goes on. `gone` when the source says that there is none any more."""

    source: str
    name: str
    error: AgentError
    gone: bool = False


class Connector(Protocol):
    """One kind of source."""

    @property
    def source_type(self) -> SourceType:
        """Which inputs are for this connector."""
        ...

    def fetch(
        self, request: ConnectorInput, workspace: Path, known: Mapping[str, str]
    ) -> AsyncIterator[Fetched | Missed]:
        """Everything at this source, one by one. Files that had to be downloaded lie in `workspace`, whose owner
        removes it; a yielded file may be deleted once the next one is asked for. `known` has the version of each
        document that is indexed already, by source.

        Raises `ConnectorError` (`agent.knowledge.errors`) when the source itself cannot be had."""
        ...

    def covers(self, request: ConnectorInput, source: str) -> bool:
        """Whether a document would be met by this request's walk if it were still there, by its `source` alone."""
        ...
