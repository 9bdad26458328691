"""The resources of the pipeline builder's sub-agents."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.subagents import Caller, SubAgentResources
from agent.text.language import LanguageDetector
from gateway.features.documents.engine.ingest.connectors.port import Connector
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.search.models import ConnectorInput, SourceType

FindSource = Callable[[str, Caller], Awaitable[ConnectorInput]]
"""Resolves a source name. Raises an `AgentError` if it does not exist or is not the caller's."""


@dataclass(frozen=True, slots=True)
class SourceResources(SubAgentResources):
    """Local files are read beneath `roots` only; `folder` is for downloads and copies."""

    library: Library
    connectors: Mapping[SourceType, Connector]
    roots: Sequence[Path]
    folder: Path
    languages: LanguageDetector
    find_source: FindSource
