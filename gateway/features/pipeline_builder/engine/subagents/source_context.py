"""Resolves source names to files: paths beneath the allowed roots, and URLs."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from agent.core.errors import BadRequestError
from agent.subagents import Caller
from gateway.features.documents.engine.ingest.allowed_credentials import check_credentials
from gateway.features.documents.engine.ingest.allowed_paths import resolve_allowed
from gateway.features.documents.engine.ingest.source_specs import parse_source_address
from gateway.features.documents.engine.search.models import ConnectorInput
from gateway.features.pipeline_builder.engine.subagents.source_files import SourceFiles
from gateway.features.pipeline_builder.engine.subagents.source_resources import FindSource, SourceResources


def find_by_address(roots: Sequence[Path]) -> FindSource:
    """A `FindSource` for paths beneath `roots`, URLs and `gdrive:<id>`."""

    async def find(source_id: str, _: Caller) -> ConnectorInput:
        if not source_id.strip():
            raise BadRequestError("which source? give a path, a URL, or gdrive:<id>", param="source_id")
        return resolve_allowed(parse_source_address(source_id), roots)

    return find


async def open_source_files(
    source_id: str, caller: Caller, resources: SourceResources, stack: AsyncExitStack
) -> SourceFiles:
    """Opens the files of a source; nothing is listed yet.

    Raises what `FindSource` raises, `ConnectorAuthError` for a credential of somebody else, and `BadRequestError` for a
    kind without a connector.
    """
    request = await resources.find_source(source_id, caller)
    check_credentials(caller.owner, request)
    connector = resources.connectors.get(request.source_type)
    if connector is None:
        raise BadRequestError(f"no connector reads {request.source_type} here", param="source_id")
    return SourceFiles(request, connector, resources.folder, stack)
