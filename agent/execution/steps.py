"""Runs one attempt of a step: resolves the arguments, executes the step, records its end and the verdict."""

from collections.abc import Sequence
from functools import partial
from time import monotonic

from agent.answers.completion import CompletionWriter
from agent.core.errors import AgentError, ModelError, StaleEpochError, StoreError
from agent.core.events import EventDraft, StepOutput, StepSpeculative, StepStarted
from agent.core.models import JsonObject, PlanStep
from agent.core.plan_outcome import REPEATED
from agent.execution.approvals import ApprovalPendingError
from agent.execution.arguments import resolve_args, set_apart_task_values
from agent.execution.decide import Start, have_dependencies_succeeded
from agent.execution.evidence import find_evidence_check
from agent.execution.list_calls import ListCalls
from agent.execution.repeated_calls import find_lasting_failure
from agent.execution.result_refining import refine_result
from agent.execution.skill_executor import SkillExecutor
from agent.execution.supervisor import StepSupervisorAgent
from agent.execution.tool_gateway import call_tool, report_lost_effect
from agent.planning.list_steps import is_list_step
from agent.run_context.calls import CallSite
from agent.run_context.outputs import load_output, shorten_args, to_step_output
from agent.run_context.run import Run


async def run_attempt(run: Run, start: Start) -> None:
    """Executes an attempt and records its end, with the rules' verdict unless the judge decides.

    A failure of the work becomes the step's output. `StaleEpochError` and `StoreError` are raised and end the run
    here.
    """
    started = monotonic()
    bodies: list[EventDraft] = []
    try:
        bodies, output = await _execute(run, start)
    except ApprovalPendingError:
        return  # the attempt resumes after a person's decision
    except (StaleEpochError, StoreError):
        raise
    except AgentError as error:
        output = build_failed_output(error)
    await record_output(run, start, output, bodies, duration=monotonic() - started)


async def record_output(
    run: Run, start: Start, output: StepOutput, before: Sequence[EventDraft] = (), *, duration: float
) -> None:
    """Records the end of an attempt after `before`, in one transaction with the rules' verdict if there is one."""
    step, number = start.step, start.attempt
    output = _mark_outside_failure(run, start, output)
    findings, finished = await run.redaction.finish_step(step, number, output, duration)
    drafts = [*before, *findings, EventDraft(finished, step.id, number)]
    if not _has_unknown_outcome(run, step, number):
        drafts += await _build_rule_verdict(run, start, finished.output)
    # A model's text can be written again, and a tool that only reads be called again; an effect cannot be undone.
    is_text = step.is_completion and isinstance(finished.output.value, str)
    is_reading = step.action in ("tool", "memory") and step.effect == "read"
    await (run.note if is_text else run.note_visibly if is_reading else run.emit)(*drafts)


def _mark_outside_failure(run: Run, start: Start, output: StepOutput) -> StepOutput:
    """A failure as text from outside, if a call of the attempt has read such: a model or a tool has worded it since."""
    attempt = run.state.get_step(start.step.id).find_attempt(start.attempt)
    if output.error_code is None or output.tainted or attempt is None:
        return output
    has_read = any(call.result is not None and call.result.tainted for call in attempt.calls)
    return output.model_copy(update={"tainted": True}) if has_read else output


def build_failed_output(error: AgentError) -> StepOutput:
    """The output of an attempt that ended with an error, with the provider's details."""
    output = StepOutput(error_code=error.code, error=error.message, text="")
    if not isinstance(error, ModelError):
        return output
    param, code = error.details.get("param"), error.details.get("code")
    return output.model_copy(
        update={
            "retry_after_s": error.retry_after_s,
            "error_param": param if isinstance(param, str) else None,
            "error_detail": code if isinstance(code, str) else None,
        }
    )


async def _execute(run: Run, start: Start) -> tuple[list[EventDraft], StepOutput]:
    """The attempt's output, and drafts for the transaction of its end."""
    step, number = start.step, start.attempt
    if is_list_step(step, run.engine.registry.find_spec(step.tool)):
        return [], await ListCalls(run, start).execute(partial(build_start_events, run, start))
    args, tainted = await resolve_args(run, start)
    begin = await build_start_events(run, start, args, tainted=tainted)
    if step.action in ("tool", "memory"):
        return await StepExecutorAgent(run, step, number).execute(args, begin, tainted=tainted)
    await run.note(*begin)
    if step.is_plan_more:  # the workflow sees that it has succeeded, and asks the planner
        output = StepOutput(text="the planner reads the results of this round")
    elif step.action == "skill":
        read_args = await set_apart_task_values(run, start, args)
        output = await SkillExecutor(run, step, number).execute(args, read_args, start.feedback, tainted=tainted)
    else:
        output = await CompletionWriter(run, step, number, await find_evidence_check(run, step)).write(start.feedback)
    return [], output


class StepExecutorAgent:
    """Executes a single tool or memory step."""

    def __init__(self, run: Run, step: PlanStep, attempt: int) -> None:
        self._run = run
        self._step = step
        self._site = CallSite(step.id, attempt)

    async def execute(
        self, args: JsonObject, begin: tuple[EventDraft, ...], *, tainted: bool
    ) -> tuple[list[EventDraft], StepOutput]:
        """The draft of the tool's return, for the transaction of the attempt's end, and the output."""
        if self._step.tool not in self._run.allowed_tools:
            await self._run.emit(*begin)
            lost = await report_lost_effect(self._run, self._site)
            if lost is not None:
                return [], to_step_output(lost)
            withheld = self._run.engine.registry.get_withheld_reason(self._step.tool or "", self._run.state.owner)
            message = withheld or f"{self._step.tool!r} is not allowed in this run"
            return [], StepOutput(error_code="ERR_TOOL_DENIED", error=message)
        failure = find_lasting_failure(self._run.state, self._step, args)
        # Without `begin`, the attempt is resumed and its call may already have started.
        if begin and failure is not None:
            await self._run.emit(*begin)
            return [], StepOutput(error_code="ERR_TOOL_DENIED", error=f"{REPEATED}{failure}")
        tool = self._run.engine.registry.get(self._step.tool)
        returned = await call_tool(self._run, tool, args, self._site, begin, tainted=tainted)
        problem = None
        if self._run.room.required_tools or self._run.room.tools_by_topic:  # only these rooms refine results
            returned, problem = await refine_result(self._run, tool, args, returned, self._site)
        output = to_step_output(returned, fallback_reason=problem)
        if _has_unknown_outcome(self._run, self._step, self._site.attempt):
            return [], output
        return [EventDraft(returned, self._site.step_id, self._site.attempt)], output


async def build_start_events(run: Run, start: Start, args: JsonObject, *, tainted: bool) -> tuple[EventDraft, ...]:
    """`step.started` (and `step.speculative`); () if an earlier process recorded them."""
    step, number = start.step, start.attempt
    if run.state.get_step(step.id).find_attempt(number) is not None:
        return ()
    begin = [
        EventDraft(StepStarted(args=shorten_args(args), feedback=start.feedback, tainted=tainted), step.id, number)
    ]
    if start.waiting_for:
        ahead = StepSpeculative(waiting_for=start.waiting_for, grounds=dict(start.depends_on_attempts))
        begin.append(EventDraft(ahead, step.id, number))
    return tuple(begin)


async def _build_rule_verdict(run: Run, start: Start, output: StepOutput) -> list[EventDraft]:
    """The verdict if the rules decide and every dependency has a verdict."""
    step = start.step
    if not have_dependencies_succeeded(run.state, step, start.depends_on_attempts):
        return []
    supervisor = StepSupervisorAgent(run)
    checked = await supervisor.check_by_rule(step, await load_output(run, output), start.attempt)
    if supervisor.needs_judge(step, checked):
        return []
    return [EventDraft(supervisor.judge_by_rules(step, checked), step.id, start.attempt)]


def _has_unknown_outcome(run: Run, step: PlanStep, number: int) -> bool:
    attempt = run.state.get_step(step.id).find_attempt(number)
    return attempt is not None and attempt.unknown_outcome is not None
