"""Finds the user's own sources that a run has not asked, after a search of another one found nothing."""

import logging

from agent.core.errors import AgentError
from agent.run_context.run import Run

log = logging.getLogger(__name__)


async def list_unasked_sources(run: Run, tool: str) -> tuple[str, ...]:
    """The sources that hold something and that no step of the plan asks, each with its search tool.

    Returns () unless `tool` searches a source and a planner can make the first new plan of the run. Memories are no
    source of their own: those that fit are in every prompt."""
    state = run.state
    routed = state.understanding is not None and state.understanding.route == "plan"
    fixed = run.room.knowledge or run.room.required_tools or not run.plans_with_model
    registry = run.engine.registry
    if fixed or not routed or len(state.plans) != 1 or not run.room.budgets.max_replans:
        return ()
    spec = registry.find_spec(tool)
    if spec is None or not spec.hints.is_search:
        return ()
    searches = {spec.hints.source: spec.name for spec in registry.list_specs(run.allowed_tools) if spec.hints.is_search}
    tool_sources = registry.list_sources(
        set().union(*(_list_step_tools(run, step.tool) for step in state.plans[0].plan.steps))
    )
    unasked_sources = []
    try:
        if "files" in searches and "files" not in tool_sources and await run.engine.ground.list_files():
            unasked_sources.append(f"the user's files ({searches['files']})")
        if "collections" in searches and "collections" not in tool_sources:
            collections = await run.engine.ground.collections.list_collections(state.owner)
            unasked_sources += (
                [f"the document collections ({searches['collections']})"] if any(collections.values()) else []
            )
    except (OSError, AgentError) as error:  # the search that found nothing then stays the answer
        log.warning("a source cannot be listed: %s", error)
    return tuple(unasked_sources)


def _list_step_tools(run: Run, name: str) -> set[str]:
    """The tool of a step, or the tools of its skill."""
    return {name, *run.engine.skills.get(name).select_tools(run.allowed_tools)} if name in run.engine.skills else {name}
