"""The tools that one run may use."""

from agent.run_context.run import Run


def list_allowed_tools(run: Run) -> tuple[str, ...]:
    """Returns the names of the owner's registered tools that the room and the caller's `metadata.tools` allow.

    If neither lists tools, omits opt-in tools, except those in `metadata.tool_calls`.
    """
    version = run.engine.registry.version
    if run.allowed_tools[0] != version:
        run.allowed_tools = (version, tuple(_select_allowed_tools(run)))
    return run.allowed_tools[1]


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
