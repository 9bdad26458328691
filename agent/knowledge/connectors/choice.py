"""`connector_for`: who reads a source, and whether the pipeline is for it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.core.errors import BadRequestError
from agent.knowledge.connectors.local import LocalConnector
from agent.knowledge.connectors.port import Connector
from agent.knowledge.models import ConnectorInput, SourceType
from agent.knowledge.pipeline import PipelineDAG
from agent.knowledge.pipeline_check import takes


def connector_for(
    request: ConnectorInput,
    pipeline: PipelineDAG,
    connectors: Mapping[SourceType, Connector],
    roots: Sequence[Path] | None,
) -> Connector:
    """Who reads this source; `roots` are the only folders local files are read from. `BadRequestError` when nobody can,
    or the pipeline is for another kind."""
    if not takes(pipeline, request.source_type):
        (source,) = pipeline.of_kind("source")
        raise BadRequestError(
            f"the pipeline reads {source.plugin} sources, not {request.source_type}; choose another template",
            param="source_type",
        )
    if request.source_type == "local" and roots is not None:
        return LocalConnector(roots)
    if request.source_type not in connectors:
        raise BadRequestError(f"no connector reads {request.source_type} here", param="source_type")
    return connectors[request.source_type]
