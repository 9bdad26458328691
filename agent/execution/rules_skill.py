"""Executes a skill without a model: calls the skill's tools whose arguments the rules can read from the task."""

from collections.abc import Mapping

from agent.core.errors import ModelNotConfiguredError
from agent.core.events import StepOutput
from agent.core.models import JsonObject, PlanStep, Source
from agent.execution.tool_gateway import call_tool
from agent.execution.tool_turns import record_return
from agent.planning.amendments import apply_reply_to_args
from agent.planning.rules import find_tool_calls
from agent.run_context.calls import CallSite
from agent.run_context.outputs import SKILL_CHARS, cut_text, load_output, to_step_output
from agent.run_context.run import Run
from agent.tools import Tool, ToolSpec


async def run_by_rules(
    run: Run, step: PlanStep, attempt: int, tools: Mapping[str, Tool], task: str, *, tainted: bool
) -> StepOutput:
    """The joined results of the skill's tools for the task. Raises `ModelNotConfiguredError` if no rule
    matches: a skill is an instruction to a model, and the rules do not pretend to have followed it."""
    calls = find_tool_calls(task, [tool.spec for tool in tools.values()])
    if not calls:
        raise ModelNotConfiguredError(
            f"no rule of skill {step.tool!r} fits this task; say what it is about after its name, or configure a model "
            "(AGENT_LLM_BASE_URL, AGENT_MODEL_FAST)",
            agent_id=step.tool,
        )
    texts: list[str] = []
    sources: list[Source] = []
    for ordinal, call in enumerate(calls, start=1):
        site = CallSite(step.id, attempt, ordinal, origin="rules")
        args = _apply_replies(run, tools[call.tool].spec, call.args, site)
        returned = await call_tool(run, tools[call.tool], args, site, tainted=tainted)
        await record_return(run, site, returned)
        output = await load_output(run, to_step_output(returned))
        if output.error_code is not None:
            return output
        texts.append(cut_text(output.text, SKILL_CHARS))
        sources += output.sources
        tainted = tainted or output.tainted
    text = "\n\n".join(texts)
    return StepOutput(value=text, text=text, tainted=tainted, sources=tuple(dict.fromkeys(sources)))


def _apply_replies(run: Run, spec: ToolSpec, args: JsonObject, site: CallSite) -> JsonObject:
    """The arguments of a call, changed by people's replies to its approval questions."""
    for request in run.state.approvals:
        decided = run.state.decisions.get(request.approval_id) if request.call_id == site.call_id else None
        if decided is not None and decided.decision == "answered":
            args = apply_reply_to_args(spec, args, decided.reason)
    return args
