"""The `Connector` protocol: one connector for each source type yields the documents of a source."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.core.errors import AgentError
from gateway.features.documents.engine.search.models import ConnectorInput, ConnectorOutput, FileType, SourceType


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A document of a source.

    `source` identifies it (a path, a URL, `gdrive:<id>`) and stays the same when its content changes; `name` is for
    display; `file_type` is None if no parser reads it. `output` is None if the document is unchanged since `version`,
    the source's own content marker (an ETag, a revision); empty if the source has none.
    """

    source: str
    name: str
    file_type: FileType | None
    output: ConnectorOutput | None
    version: str = ""
    url: str | None = None
    total: int | None = None
    """How many documents there are as far as known; None until the end of the walk."""


@dataclass(frozen=True, slots=True)
class MissedDocument:
    """A document that could not be fetched; the walk continues. `gone`: the source says that it no longer exists."""

    source: str
    name: str
    error: AgentError
    gone: bool = False
    is_walk_limit: bool = False
    """Whether it stands for documents beyond a limit of the walk, which are not failures."""


class Connector(Protocol):
    """Fetches one kind of source."""

    @property
    def source_type(self) -> SourceType:
        """The source type this connector reads."""
        ...

    def fetch(
        self, request: ConnectorInput, workspace: Path, known: Mapping[str, str]
    ) -> AsyncIterator[FetchedDocument | MissedDocument]:
        """Yields every document of this source.

        Downloads are in `workspace`, whose owner deletes it; a yielded file may be deleted once the next one is
        requested. `known` maps the sources that are indexed already to their versions. Raises `ConnectorError` if the
        source itself cannot be read.
        """
        ...

    def covers(self, request: ConnectorInput, source: str) -> bool:
        """Whether a walk of this request would find the document if it still existed, by its `source` alone."""
        ...
