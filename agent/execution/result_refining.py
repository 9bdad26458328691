"""Lets a tool improve its result with the run's model (`RefiningTool`)."""

from agent.core.events import ToolReturned
from agent.core.models import JsonObject
from agent.llm.port import ModelReply
from agent.run_context.calls import CallSite
from agent.run_context.model_calls import MeteredModels, ModelCall
from agent.run_context.run import Run
from agent.tools import RefiningTool, Tool


async def refine_result(
    run: Run, tool: Tool, args: JsonObject, returned: ToolReturned, site: CallSite
) -> tuple[ToolReturned, str | None]:
    """The improved result, or the unchanged one with the reason; None as reason if no model was called.

    Applies to tools that the room requires, in a run's first plan. A replan keeps its results unchanged."""
    is_first_plan = run.state.plan is None or run.state.plan.version == 0
    required = {*run.room.required_tools, *(name for names in run.room.tools_by_topic.values() for name in names)}
    value = returned.output
    if not run.works_with_model or not is_first_plan or tool.spec.name not in required:
        return returned, None
    if returned.error_code is not None or not isinstance(value, dict) or not isinstance(tool, RefiningTool):
        return returned, None

    async def complete(messages: tuple[JsonObject, ...], max_tokens: int) -> ModelReply:
        call = ModelCall("skill", messages, max_tokens=max_tokens)
        return await MeteredModels(run, site.step_id, site.attempt).complete(call)

    result, problem = await tool.refine(value, args, complete)
    if result is None:
        return returned, problem and f"{tool.spec.name} {problem}"
    changed = {"output": result.value, "text": result.text, "implementation": "llm", "whole_blob": None}
    return returned.model_copy(update=changed), None
