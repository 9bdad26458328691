"""The tools that one run may use."""

from agent.run_context.run import Run

CACHED_CHOICES = 100
"""Cached lists of allowed tools; one for each room, owner and choice of tools by callers."""


def list_allowed_tools(run: Run) -> tuple[str, ...]:
    """Returns the names of the owner's registered tools that the room and the caller's `metadata.tools` allow.

    If neither lists tools, omits opt-in tools, except those in `metadata.tool_calls`.
    """
    metadata, room = run.state.request.metadata, run.room
    chosen = (repr(metadata.get("tools")), repr(metadata.get("tool_calls")))
    key = (run.engine.registry.version, run.state.owner, room.id, room.tools, *chosen)
    known = run.engine.allowed_tools
    if key not in known:
        if len(known) >= CACHED_CHOICES:
            known.clear()
        known[key] = tuple(_select_allowed_tools(run))
    return known[key]


def _select_allowed_tools(run: Run) -> list[str]:
    specs = run.engine.registry.list_room_specs(run.room, run.state.owner)
    wanted = run.state.request.metadata.get("tools")
    if isinstance(wanted, list):
        return [spec.name for spec in specs if spec.name in wanted]
    if run.room.tools is not None:
        return [spec.name for spec in specs]
    asked = run.state.request.metadata.get("tool_calls")
    calls = asked if isinstance(asked, list) else []
    called = [call.get("tool", call.get("name")) for call in calls if isinstance(call, dict)]
    return [spec.name for spec in specs if not spec.is_opt_in or spec.name in called]
