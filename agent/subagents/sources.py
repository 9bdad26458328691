"""From what a caller calls a source to its files: the default way, by paths beneath the readable roots and URLs."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from agent.core.errors import BadRequestError
from agent.knowledge.models import ConnectorInput
from agent.knowledge.roots import beneath
from agent.knowledge.sources import source_of_words
from agent.subagents.base import Caller, FindSource, Materials
from agent.subagents.source_files import SourceFiles


def by_words(roots: Sequence[Path]) -> FindSource:
    """Sources by their own names: paths beneath `roots`, URLs, `gdrive:<id>`. Where sources have ids, whoever knows
    them looks there first."""

    async def find(source_id: str, _: Caller) -> ConnectorInput:
        if not source_id.strip():
            raise BadRequestError("which source? give a path, a URL, or gdrive:<id>", param="source_id")
        return beneath(source_of_words(source_id), roots)

    return find


async def files_of(source_id: str, caller: Caller, materials: Materials, stack: AsyncExitStack) -> SourceFiles:
    """The files of a source; nothing is listed yet. Raises what `FindSource` does, and `BadRequestError` for a kind
    that nobody reads here."""
    request = await materials.find_source(source_id, caller)
    connector = materials.connectors.get(request.source_type)
    if connector is None:
        raise BadRequestError(f"no connector reads {request.source_type} here", param="source_id")
    return SourceFiles(request, connector, materials.folder, stack)
