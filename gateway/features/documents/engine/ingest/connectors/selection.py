"""Selects the connector for a source, and checks that the pipeline accepts it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.core.errors import BadRequestError
from gateway.features.documents.engine.ingest.connectors.local import LocalConnector
from gateway.features.documents.engine.ingest.connectors.port import Connector
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.ingest.pipeline_check import accepts_source
from gateway.features.documents.engine.search.models import ConnectorInput, SourceType


def select_connector(
    request: ConnectorInput,
    pipeline: PipelineDAG,
    connectors: Mapping[SourceType, Connector],
    roots: Sequence[Path] | None,
) -> Connector:
    """The connector for this source. Local files are read beneath `roots` only.

    Raises `BadRequestError` if there is no connector for it, or the pipeline is for another kind of source.
    """
    if not accepts_source(pipeline, request.source_type):
        (source,) = pipeline.list_nodes("source")
        raise BadRequestError(
            f"the pipeline reads {source.plugin} sources, not {request.source_type}; choose another template",
            param="source_type",
        )
    if request.source_type == "local" and roots is not None:
        return LocalConnector(roots)
    check_source_type(request.source_type, connectors)
    return connectors[request.source_type]


def check_source_type(source_type: SourceType, connectors: Mapping[SourceType, Connector]) -> None:
    """Raises `BadRequestError` for a source type without a connector."""
    if source_type not in connectors:
        type_names = ", ".join(sorted(connectors))
        raise BadRequestError(f"there is no connector for {source_type}; there are {type_names}", param="source_type")
