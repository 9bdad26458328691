"""One attempt of a step: arguments resolved, carried out by whom it belongs to, its end recorded with the verdict."""

from time import monotonic

from agent.core.errors import AgentError, ModelError, StaleEpochError, StoreError
from agent.core.events import Draft, StepFinished, StepJudged, StepOutput, StepSpeculative, StepStarted
from agent.core.models import JsonObject, PlanStep
from agent.execution.approvals import ApprovalPendingError
from agent.execution.arguments import text_args
from agent.execution.asides import attempt_shown
from agent.execution.completion import CompletionWriter
from agent.execution.decide import Start, confirmed
from agent.execution.outputs import load, shown_args, step_output, tainted_inputs
from agent.execution.release import without_secrets
from agent.execution.rewriting import rewritten
from agent.execution.run import Run
from agent.execution.site import CallSite
from agent.execution.skill_executor import SkillExecutor, allowed_tools
from agent.execution.supervisor import StepSupervisorAgent
from agent.execution.tool_gateway import call_tool, lost_effect
from agent.planning.references import resolve


async def run_attempt(run: Run, start: Start) -> None:
    """Carry out an attempt and record how it ended; with the rule's verdict, unless the judge is to be asked.

    Failures of the work become the step's output. `StaleEpochError` and `StoreError` end the run here instead."""
    step, number = start.step, start.attempt
    started = monotonic()
    bodies: list[Draft] = []
    try:
        bodies, output = await _carry_out(run, start)
    except ApprovalPendingError:
        return  # the attempt goes on when a person has decided
    except (StaleEpochError, StoreError):
        raise
    except AgentError as error:
        wait = error.retry_after_s if isinstance(error, ModelError) else None
        said = without_secrets(run, error.message)
        output = StepOutput(error_code=error.code, error=said, text="", retry_after_s=wait)
    told, output = await attempt_shown(run, step, number, output)
    finished = StepFinished(output=output, duration=monotonic() - started)
    bodies += [*told, Draft(finished, step.id, number)]
    if not _is_unknown(run, step, number):
        bodies += await _verdict_by_rule(run, start, output)
    # What a model wrote can be written again; what a tool did cannot be done again.
    written = step.is_completion and isinstance(output.value, str)
    await (run.note if written else run.emit)(*bodies)


async def _carry_out(run: Run, start: Start) -> tuple[list[Draft], StepOutput]:
    """The output of the attempt, and drafts that belong into the same transaction as its end."""
    step, number = start.step, start.attempt
    args, tainted = await _resolved(run, start)
    begin = await _beginning(run, start, args, tainted=tainted)
    if step.action in ("tool", "memory"):
        return await StepExecutorAgent(run, step, number).execute(args, begin, tainted=tainted)
    await run.note(*begin)
    if step.action == "skill":
        output = await SkillExecutor(run, step, number).execute(args, start.feedback, tainted=tainted)
    else:
        output = await CompletionWriter(run, step, number).write(start.feedback)
    return [], output


class StepExecutorAgent:
    """Runs a single tool or memory step."""

    def __init__(self, run: Run, step: PlanStep, attempt: int) -> None:
        self._run = run
        self._step = step
        self._site = CallSite(step.id, attempt)

    async def execute(
        self, args: JsonObject, begin: tuple[Draft, ...], *, tainted: bool
    ) -> tuple[list[Draft], StepOutput]:
        """The tool's return, to be committed with the end of the attempt, and the output it makes."""
        if self._step.tool not in allowed_tools(self._run):
            await self._run.emit(*begin)
            lost = await lost_effect(self._run, self._site)
            if lost is not None:
                return [], step_output(lost)
            withheld = self._run.engine.registry.withheld(self._step.tool or "")
            message = withheld or f"{self._step.tool!r} is not allowed in this run"
            return [], StepOutput(error_code="ERR_TOOL_DENIED", error=message)
        tool = self._run.engine.registry.get(self._step.tool)
        returned = await call_tool(self._run, tool, args, self._site, begin, tainted=tainted)
        returned, kept = await rewritten(self._run, tool, args, returned, self._site)
        output = step_output(returned).model_copy(update={"fallback_reason": kept})
        if returned.error_code == "ERR_TOOL_UNKNOWN_OUTCOME":
            return [], output
        return [Draft(returned, self._site.step_id, self._site.attempt)], output


async def _resolved(run: Run, start: Start) -> tuple[JsonObject, bool]:
    """The step's arguments with references filled in, and whether anything in them came from outside.

    The outputs are those of the attempts the step rests on, even when one is repeated meanwhile."""
    step = start.step
    outputs: dict[str, StepOutput] = {}
    for dependency, number in start.grounds.items():
        attempt = run.state.step(dependency).attempt(number)
        output = attempt.output if attempt else None
        if output is not None:
            outputs[dependency] = await load(run, output)
    tools = run.engine.registry
    texts = text_args(tools.get(step.tool).spec) if step.action != "skill" and step.tool in tools else ()
    resolved = resolve(dict(step.args), outputs.__getitem__, texts=texts)
    tainted = resolved.tainted or (step.action == "skill" and tainted_inputs(run.state, step))
    return resolved.args, tainted or run.state.tainted


async def _beginning(run: Run, start: Start, args: JsonObject, *, tainted: bool) -> tuple[Draft, ...]:
    """`step.started` (and `step.speculative`), unless an earlier process has recorded them."""
    step, number = start.step, start.attempt
    if any(attempt.number == number for attempt in run.state.step(step.id).attempts):
        return ()
    begin = [Draft(StepStarted(args=shown_args(args), feedback=start.feedback, tainted=tainted), step.id, number)]
    if start.waiting_for:
        ahead = StepSpeculative(waiting_for=start.waiting_for, grounds=dict(start.grounds))
        begin.append(Draft(ahead, step.id, number))
    return tuple(begin)


async def _verdict_by_rule(run: Run, start: Start, output: StepOutput) -> list[Draft]:
    """The verdict, when rules decide and nothing the attempt rests on is still unjudged."""
    step = start.step
    if not confirmed(run.state, step, start.grounds):
        return []
    supervisor = StepSupervisorAgent(run)
    checked = await supervisor.by_rule(step, await load(run, output), start.attempt)
    if supervisor.needs_judge(step, checked):
        return []
    verdict = StepJudged(verdict=supervisor.final(step, checked.verdict), rule=checked.doubt or "")
    return [Draft(verdict, step.id, start.attempt)]


def _is_unknown(run: Run, step: PlanStep, number: int) -> bool:
    return any(a.number == number and a.unknown is not None for a in run.state.step(step.id).attempts)
