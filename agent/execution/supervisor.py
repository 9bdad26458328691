"""`StepSupervisorAgent`: the verdict on one attempt. Rules judge first, then the fast tier if they leave a doubt.

No rule can say whether the free text of a skill serves its intent. In `auto` one such text a run is judged if the
model's profile says that it judges reliably; of others the run reports that nobody judged them. In `always` every
result and the answer are judged.

The judge may worsen a rule's verdict, never improve it. If it is unreachable, or gives no readable verdict twice, the
rules' verdict holds, and the run reports that no judge checked it.
"""

import asyncio
import json
import re
from dataclasses import replace
from time import monotonic

from agent.answers.structured_answer import read_json_answer, wants_json
from agent.core.errors import BudgetError, ModelError
from agent.core.events import AnswerDelta, StepJudged, StepOutput
from agent.core.models import JsonObject, Outcome, PlanStep, StepOutcome
from agent.core.plan_references import find_references
from agent.core.run_state import AttemptState
from agent.execution.checks import (
    REPEATED_REQUEST,
    CheckResult,
    Inspection,
    check_output,
    is_empty_search,
    repeats_request,
)
from agent.execution.evidence import build_judge_blocks, collect_figure_evidence
from agent.execution.rounds import may_look_again
from agent.execution.unasked_sources import list_unasked_sources
from agent.llm.port import ResponseSchema
from agent.llm.prompts import format_block, render
from agent.llm.thoughts import split_text
from agent.planning.list_steps import is_list_step, split_list_inputs
from agent.run_context.model_calls import MeteredModels, ModelCall
from agent.run_context.outputs import load_output
from agent.run_context.run import Run
from agent.tools.extracted_fields import EXTRACT

VERDICT_SCHEMA = ResponseSchema(
    "verdict",
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["reason", "evidence", "outcome", "suggested_fix"],
        "properties": {
            "reason": {"type": "string"},
            "evidence": {"type": "string"},
            "outcome": {"type": "string", "enum": [outcome.value for outcome in Outcome]},
            "suggested_fix": {"type": "string"},
        },
    },
)
NOBODY_JUDGES = "no model of this gateway is known to judge reliably"
JUDGED_ONCE = "one text is judged in each run, and another one was"
_UNASKED = (NOBODY_JUDGES, JUDGED_ONCE)
"""Why nobody was asked to judge a text."""
_DOUBTED = "what the judge doubts: {}"
_SEVERITY = {Outcome.SUCCESS: 0, Outcome.RETRY: 1, Outcome.REPLAN: 2, Outcome.ABORT: 3}


class StepSupervisorAgent:
    """Judges the attempts of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def check_by_rule(self, step: PlanStep, output: StepOutput, number: int) -> CheckResult:
        """The rules' verdict on the output of attempt `number`."""
        state = self._run.state
        own = state.get_step(step.id)
        previous = next((a for a in reversed(own.attempts) if a.number < number and not a.is_discarded), None)
        # The same output after a judge's RETRY may be right. Only a rule's failure verdict is certain.
        failed = previous is not None and previous.verdict is not None and previous.verdict.by == "rule"
        # Fields that are not there are what an extraction was to find out.
        found_nothing = step.tool != EXTRACT and is_empty_search(output, step.args, is_search=self._is_search(step))
        is_needed = any(
            step.id in find_references(self._list_needs(other))
            for other in state.plan_steps
            if other.args and step.id in other.depends_on
        )
        inspection = Inspection(
            step,
            output,
            evidence=await collect_figure_evidence(self._run, step, own.find_attempt(number)),
            failed_before=previous.output if previous is not None and failed else None,
            found_nothing=found_nothing,
            needed_by_later=is_needed,
            wants_sources=self._run.room.citations,
            may_repeat=own.retry_count < self._run.room.budgets.max_retries,
            may_look_again=self._run.decides_in_rounds and may_look_again(self._run),
            was_read=self._was_streamed(step, number),
            raises_failures=self._is_tool_raising(step),
            misfit=await self._find_misfit(step, output),
            unasked=await list_unasked_sources(self._run, step.tool) if found_nothing else (),
        )
        checked = check_output(inspection)
        refused_before = await self._find_refusal(previous, output)
        return replace(checked, refused_before=refused_before) if refused_before else checked

    def needs_judge(self, step: PlanStep, checked: CheckResult) -> bool:
        """Whether the room's policy requires the judge for this verdict."""
        if not self._run.has_model or checked.verdict.outcome is not Outcome.SUCCESS or step.is_plan_more:
            return False
        policy = self._run.room.supervision
        if policy == "always":
            return step.is_work or checked.by_model
        if policy != "auto" or not step.is_work:
            return False
        return checked.doubt is not None or (_is_free_text(step, checked) and not self._find_reason_not_to_judge(step))

    def _find_reason_not_to_judge(self, step: PlanStep) -> str:
        """The reason why the free text of a skill is not judged in `auto`; "" if it is."""
        if not self._run.profile.judges:
            return NOBODY_JUDGES
        state = self._run.state
        for other in state.plan_steps:
            attempts = [one for one in state.get_step(other.id).attempts if one.number or other.id != step.id]
            was_judged = any(one.verdict is not None and one.verdict.by == "model" for one in attempts)
            if was_judged or any(one.judge_error and one.judge_error not in _UNASKED for one in attempts):
                return JUDGED_ONCE
        # Of texts that end at the same time, the first of the plan is judged.
        waiting = [
            one.id for one in state.plan_steps if one.action == "skill" and state.get_step(one.id).status == "executed"
        ]
        return JUDGED_ONCE if step.id in waiting[1:] else ""

    def limit_retries(self, step: PlanStep, verdict: StepOutcome) -> StepOutcome:
        """The verdict within the step's retry budget: a RETRY beyond it becomes a REPLAN."""
        if verdict.outcome is not Outcome.RETRY:
            return verdict
        if step.effect == "effect":
            why = "a step with side effects is not repeated"
        elif self._run.state.get_step(step.id).retry_count >= self._run.room.budgets.max_retries:
            why = "this step has used its retry"
        else:
            return verdict
        return verdict.model_copy(update={"outcome": Outcome.REPLAN, "reason": f"{verdict.reason} ({why})"})

    def judge_by_rules(self, step: PlanStep, checked: CheckResult, *, judge_error: str = "") -> StepJudged:
        """The rules' verdict. `judge_error` says why a required judge gave none."""
        if not judge_error and self._run.room.supervision == "auto" and self._run.has_model:
            accepted = checked.verdict.outcome is Outcome.SUCCESS and not (checked.doubt or checked.refused_before)
            judge_error = self._find_reason_not_to_judge(step) if accepted and _is_free_text(step, checked) else ""
        verdict = self.limit_retries(step, checked.verdict)
        doubts = [checked.doubt or "", _DOUBTED.format(checked.refused_before) if checked.refused_before else ""]
        return StepJudged(
            verdict=verdict,
            rule="; ".join(filter(None, doubts)) if verdict.outcome is Outcome.SUCCESS else checked.doubt or "",
            figures=checked.figures,
            misfit=checked.misfit,
            judge_error=judge_error,
        )

    async def judge(self, step: PlanStep, number: int) -> StepJudged:
        """The verdict on a finished attempt, by the rules and, if the policy requires it, by the judge."""
        attempt = next(a for a in self._run.state.get_step(step.id).attempts if a.number == number)
        output = attempt.output or StepOutput(error_code="ERR_INTERNAL", error="the attempt has no output")
        output = await load_output(self._run, output)
        checked = await self.check_by_rule(step, output, number)
        if not self.needs_judge(step, checked):
            return self.judge_by_rules(step, checked)
        started = monotonic()
        try:
            verdict = await self._ask_judge(step, attempt, output, checked)
        except JudgeUnreachableError as error:
            unjudged = self.judge_by_rules(step, checked, judge_error=str(error))
            return unjudged.model_copy(update={"duration": monotonic() - started})
        if step.is_completion:
            return self._build_answer_verdict(step, number, checked, verdict, monotonic() - started)
        return StepJudged(
            verdict=self.limit_retries(step, verdict),
            rule=checked.doubt or checked.verdict.reason,
            duration=monotonic() - started,
        )

    def _build_answer_verdict(
        self, step: PlanStep, number: int, checked: CheckResult, verdict: StepOutcome, duration: float
    ) -> StepJudged:
        """The verdict on an answer. A bad one is written once more, unless a reader has seen it: then it stays,
        and the run reports what the judge noticed. No new plan is made for it, because its results were accepted."""
        if verdict.outcome is Outcome.SUCCESS:
            # What the rules doubt stays marked: the judge may not improve their verdict.
            accepted = replace(checked, refused_before="")
            judged = self.judge_by_rules(step, accepted) if checked.doubt else StepJudged(verdict=verdict)
            return judged.model_copy(update={"duration": duration})
        own = self._run.state.get_step(step.id)
        may_repeat = own.retry_count < self._run.room.budgets.max_retries and not self._was_streamed(step, number)
        if may_repeat and verdict.outcome is not Outcome.ABORT:
            again = verdict.model_copy(update={"outcome": Outcome.RETRY})
            return StepJudged(verdict=again, rule=checked.verdict.reason, duration=duration)
        doubt = _DOUBTED.format(verdict.reason)
        doubt = f"{checked.doubt}; {doubt}" if checked.doubt else doubt
        stays = StepOutcome(outcome=Outcome.SUCCESS, reason="the answer stands with the judge's doubt")
        return StepJudged(verdict=stays, rule=doubt, figures=checked.figures, duration=duration)

    async def _ask_judge(
        self, step: PlanStep, attempt: AttemptState, output: StepOutput, checked: CheckResult
    ) -> StepOutcome:
        """The judge's verdict. Raises `JudgeUnreachableError` if there is none.

        Does not repeat a call that timed out, and limits all retries to twice the time of one call, so that a run does
        not wait minutes for a judge. Does not call a judge again that was unreachable earlier in this run."""
        if self._was_unreachable():
            raise JudgeUnreachableError("the judge was unreachable earlier in this run")
        messages: tuple[JsonObject, ...] = (
            {"role": "system", "content": render("supervisor")},
            {"role": "user", "content": await self._build_question(step, attempt, output, checked)},
        )
        models = MeteredModels(self._run, step.id, attempt.number)
        limit = 2 * self._run.engine.models.timeout_s  # one call, and the pauses of retries at a busy endpoint
        try:
            async with asyncio.timeout(limit):
                verdict = await self._read_verdict(models, messages) or await self._read_verdict(models, messages)
        except TimeoutError as error:
            raise JudgeUnreachableError(f"the judge did not answer within {limit:g} s") from error
        except (BudgetError, ModelError) as error:
            raise JudgeUnreachableError(f"the judge could not be asked: {error.message}") from error
        if verdict is None:
            raise JudgeUnreachableError("the judge gave no readable verdict, even when asked again")
        return verdict if _SEVERITY[verdict.outcome] >= _SEVERITY[checked.verdict.outcome] else checked.verdict

    async def _read_verdict(self, models: MeteredModels, messages: tuple[JsonObject, ...]) -> StepOutcome | None:
        """The verdict of one call, or None if it is unreadable or cut off."""
        reply = await models.complete(
            ModelCall("supervisor", messages, schema=VERDICT_SCHEMA, max_tokens=400, retry_timeouts=False)
        )
        return parse_verdict(reply.text) if reply.is_whole else None

    async def _build_question(
        self, step: PlanStep, attempt: AttemptState, output: StepOutput, checked: CheckResult
    ) -> str:
        blocks = await build_judge_blocks(self._run, step, attempt, output, checked.figures)
        return f"{blocks}\nA check noticed:\n{format_block('evidence', checked.doubt)}" if checked.doubt else blocks

    def _was_unreachable(self) -> bool:
        attempts = self._run.state.list_attempts()
        return any(one.judge_error and one.judge_error not in _UNASKED for one in attempts)

    async def _find_refusal(self, previous: AttemptState | None, output: StepOutput) -> str:
        """Why the judge refused the output of the attempt before, if this one is the same; "" otherwise. `auto` asks
        the judge once a run, so that nobody else would say it."""
        verdict = previous.verdict if previous is not None else None
        if previous is None or previous.output is None or verdict is None:
            return ""
        if verdict.by != "model" or verdict.outcome is Outcome.SUCCESS:
            return ""
        before = await load_output(self._run, previous.output)
        return verdict.reason if before.text.split() == output.text.split() else ""

    def _was_streamed(self, step: PlanStep, number: int) -> bool:
        """Whether this attempt's text was streamed to a reader. A doubt does not withdraw a streamed text."""
        return self._run.follower_count > 0 and any(
            isinstance(event.body, AnswerDelta) and event.step_id == step.id and event.attempt == number
            for event in self._run.events
        )

    async def _find_misfit(self, step: PlanStep, output: StepOutput) -> str:
        """Describes how a model's answer misses the JSON that the request asks for, or that it only repeats the request
        after something was done for it; "" if it fits or need not fit."""
        options = self._run.state.request.options
        by_model = step.is_completion and output.effective == "llm" and output.tailored is None
        whole = output.finish_reason == "stop" and not output.refused and output.error_code is None
        has_results = any(other.is_work for other in self._run.state.plan_steps)
        if by_model and whole and has_results and repeats_request(output.text, self._run.state.question):
            return REPEATED_REQUEST
        planned = self._run.room.planning and "response_format" in options
        if not (by_model and whole and planned and wants_json(options)):
            return ""
        return (await read_json_answer(output.text, options))[1]

    def _list_needs(self, step: PlanStep) -> JsonObject:
        """The arguments that a step cannot do without. An empty list of items needs no call: nothing is missing."""
        is_list = is_list_step(step, self._run.engine.registry.find_spec(step.tool))
        return split_list_inputs(step.args)[1] if is_list else step.args

    def _is_search(self, step: PlanStep) -> bool:
        """Whether the step's tool declares itself a search; False if the tool no longer exists."""
        spec = self._run.engine.registry.find_spec(step.tool)
        return step.action == "tool" and spec is not None and spec.hints.is_search

    def _is_tool_raising(self, step: PlanStep) -> bool:
        """Whether the step's tool raises every failure; False if the tool no longer exists."""
        spec = self._run.engine.registry.find_spec(step.tool) if step.action != "skill" else None
        # A sub-agent that did not finish says what it found by then.
        return spec is not None and (spec.always_raises_errors or spec.uses_subagents)


def _is_free_text(step: PlanStep, checked: CheckResult) -> bool:
    """Whether a model wrote the text of a skill, of which rules can say little."""
    return step.action == "skill" and checked.by_model


class JudgeUnreachableError(Exception):
    """Raised if the judge gives no verdict: it timed out or failed, or no budget is left for it."""


def parse_verdict(text: str) -> StepOutcome | None:
    """The verdict in a model's reply (strict JSON, fenced, or the last object), or None if unreadable."""
    split = split_text(text)
    if split.is_open:  # a truncated draft in the thinking is not a verdict
        return None
    text = split.text
    decoder = json.JSONDecoder()
    last: object = None
    end = 0
    for start in (match.start() for match in re.finditer(r"\{", text)):
        if start < end:  # inside the last object: text that it quotes is no verdict
            continue
        try:
            candidate, after = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):  # no JSON, a number with too many digits, or unbalanced brackets
            continue
        if isinstance(candidate, dict) and "outcome" in candidate:
            last, end = candidate, after
    if not isinstance(last, dict):
        return None
    word = str(last.get("outcome", "")).strip().upper()
    reason = last.get("reason")
    if word not in Outcome.__members__ or not isinstance(reason, str) or not reason.strip():
        return None
    fix = last.get("suggested_fix")
    return StepOutcome(
        outcome=Outcome(word),
        reason=reason.strip()[:1000],
        suggested_fix=str(fix).strip()[:1000] or None if fix else None,
        evidence=str(last.get("evidence") or "")[:1000],
        by="model",
    )
