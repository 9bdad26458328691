"""Understand: how this request will be carried out. Cheap turns are routed here, before any model is asked."""

from agent.core.events import RequestUnderstood
from agent.execution.catalogue import catalogue_of
from agent.execution.run import Run
from agent.execution.stages.guard import explicit_tool_calls
from agent.planning.routing import route


async def understand(run: Run) -> None:
    """Record the route and the question."""
    chosen = route(
        run.state.prompt,
        room=run.room,
        catalogue=catalogue_of(run),
        tool_calls=bool(explicit_tool_calls(run.state.request)),
        has_model=run.has_model,
    )
    await run.emit(
        RequestUnderstood(route=chosen.kind, reason=chosen.reason, question=chosen.question, skill=chosen.skill)
    )
