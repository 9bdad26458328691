"""The tools that one run may use."""

from collections.abc import Sequence

from pydantic import JsonValue

from agent.core.models.request import read_explicit_tool_calls
from agent.run_context.run import Run

CACHED_CHOICES = 100
"""Cached lists of allowed tools; one for each room, owner and choice of tools by callers."""


def list_allowed_tools(run: Run) -> tuple[str, ...]:
    """The names of the owner's registered tools that the room and the caller's `metadata.tools` allow.

    If neither lists tools, omits opt-in tools, except those in `metadata.tool_calls`.
    """
    wanted, called, room = run.state.request.metadata.get("tools"), _list_called_tools(run), run.room
    key = (run.engine.registry.version, run.state.owner, room.id, room.tools, repr(wanted), called)
    allowed = run.engine.allowed_tools
    if key not in allowed:
        if len(allowed) >= CACHED_CHOICES:
            allowed.clear()
        allowed[key] = tuple(_select_allowed_tools(run, wanted, called))
    return allowed[key]


def _list_called_tools(run: Run) -> tuple[str, ...]:
    """The names of the tools in `metadata.tool_calls`, in whichever form."""
    return tuple(call.tool for call in read_explicit_tool_calls(run.state.request))


def _select_allowed_tools(run: Run, wanted: JsonValue, called: Sequence[str]) -> list[str]:
    specs = run.engine.registry.list_room_specs(run.room, run.state.owner)
    if isinstance(wanted, list):
        names = {run.engine.registry.resolve_in_room(run.room, str(name)) for name in wanted}
        return [spec.name for spec in specs if spec.name in names]
    if run.room.tools is not None:
        return [spec.name for spec in specs]
    return [spec.name for spec in specs if not spec.is_opt_in or spec.name in called]
