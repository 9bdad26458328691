"""`StepSupervisorAgent`: the verdict on one attempt. Rules first; the fast tier as judge where they leave a doubt.

The judge may worsen a rule's verdict, never improve it. A reply that cannot be read, or a judge that cannot be
asked, never counts as success.
"""

import json
import re
from time import monotonic

from agent.core.errors import BudgetError, ModelError
from agent.core.events import AnswerDelta, StepJudged, StepOutput
from agent.core.fold import AttemptState
from agent.core.llm.port import ResponseSchema
from agent.core.models import JsonObject, Outcome, PlanStep, StepOutcome
from agent.execution.asides import verdict_shown
from agent.execution.checks import Checked, check
from agent.execution.decide import given_up, reason_of
from agent.execution.figures import asks_to_invent
from agent.execution.metering import MeteredModels
from agent.execution.outputs import JUDGE_CHARS, args_text, data_block, load, results, step_output
from agent.execution.run import Run
from agent.planning.references import find_references
from agent.prompts import render

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
_SEVERITY = {Outcome.SUCCESS: 0, Outcome.RETRY: 1, Outcome.REPLAN: 2, Outcome.ABORT: 3}
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_UNENDED = re.compile(r"<think(?:ing)?>", re.IGNORECASE)


class StepSupervisorAgent:
    """Judges attempts of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def by_rule(self, step: PlanStep, output: StepOutput, number: int) -> Checked:
        """What the deterministic checks say of the output of attempt `number`."""
        state = self._run.state
        attempts = state.step(step.id).attempts
        attempt = next((a for a in attempts if a.number == number), None)
        previous = next((a for a in reversed(attempts) if a.number < number and not a.discarded), None)
        later = state.plan.steps if state.plan else ()
        return check(
            step if step.intent else step.model_copy(update={"intent": state.question}),
            output,
            evidence=await self._grounds(step, attempt),
            previous=previous.output if previous else None,
            needed_by_later=any(step.id in find_references(other.args) for other in later),
            wants_sources=self._run.room.citations,
            may_repeat=state.step(step.id).retries < self._run.room.budgets.max_retries,
            heard=self._heard(step, number),
            raises=self._raises(step),
        )

    def needs_judge(self, step: PlanStep, checked: Checked) -> bool:
        """Whether the room's policy asks the model about this verdict."""
        if not self._run.has_model or checked.verdict.outcome is not Outcome.SUCCESS or step.is_completion:
            return False
        policy = self._run.room.supervision
        return policy == "always" or (policy == "auto" and checked.doubt is not None)

    def final(self, step: PlanStep, verdict: StepOutcome) -> StepOutcome:
        """The verdict within the step's retry budget: one RETRY too many is a REPLAN."""
        if verdict.outcome is not Outcome.RETRY:
            return verdict
        if step.effect == "effect":
            why = "a step with side effects is not repeated"
        elif self._run.state.step(step.id).retries >= self._run.room.budgets.max_retries:
            why = "the retry of this step is spent"
        else:
            return verdict
        return verdict.model_copy(update={"outcome": Outcome.REPLAN, "reason": f"{verdict.reason} ({why})"})

    async def judge(self, step: PlanStep, number: int) -> StepJudged:
        """The verdict on a finished attempt, by rule and, where the policy asks for it, by the judge."""
        attempt = next(a for a in self._run.state.step(step.id).attempts if a.number == number)
        output = attempt.output or StepOutput(error_code="ERR_INTERNAL", error="the attempt has no output")
        output = await load(self._run, output)
        checked = await self.by_rule(step, output, number)
        if not self.needs_judge(step, checked):
            return StepJudged(verdict=self.final(step, checked.verdict), rule=checked.doubt or "")
        started = monotonic()
        verdict = await self._ask(step, attempt, output, checked)
        return StepJudged(
            verdict=self.final(step, verdict),
            rule=checked.doubt or checked.verdict.reason,
            duration=monotonic() - started,
        )

    async def _ask(self, step: PlanStep, attempt: AttemptState, output: StepOutput, checked: Checked) -> StepOutcome:
        rule = checked.verdict
        closed = StepOutcome(
            outcome=Outcome.REPLAN,
            reason="the judge gave no readable verdict, and its silence is no success",
            by="model",
        )
        doubt = f"\nA check noticed: {checked.doubt}." if checked.doubt else ""
        user = "\n".join(
            (
                data_block("intent", step.intent or self._run.state.question, limit=JUDGE_CHARS),
                data_block("input", args_text(dict(step.args)), limit=JUDGE_CHARS),
                data_block("evidence", await self._evidence(step, attempt), limit=2 * JUDGE_CHARS),
                data_block("output", output.text, limit=JUDGE_CHARS, step=step.id, tool=step.tool),
            )
        )
        messages: tuple[JsonObject, ...] = (
            {"role": "system", "content": render("supervisor")},
            {"role": "user", "content": user + doubt},
        )
        models = MeteredModels(self._run, step.id, attempt.number)
        try:
            reply = await models.complete("supervisor", messages, schema=VERDICT_SCHEMA, max_tokens=400)
        except BudgetError as error:
            reason = f"the judge could not be asked: {error.message}"
            return closed.model_copy(update={"reason": reason, "outcome": Outcome.ABORT})
        except ModelError as error:
            return closed.model_copy(update={"reason": f"the judge could not be asked: {error.message}"})
        verdict = read_verdict(reply.text) if reply.finish_reason != "length" else None
        if verdict is None:
            return closed
        verdict = verdict_shown(self._run, verdict)
        return verdict if _SEVERITY[verdict.outcome] >= _SEVERITY[rule.outcome] else rule

    def _heard(self, step: PlanStep, number: int) -> bool:
        """Whether somebody follows the run who has been sent what this attempt wrote. A text that was read is not
        taken back for a doubt."""
        return self._run.following > 0 and any(
            isinstance(event.body, AnswerDelta) and event.step_id == step.id and event.attempt == number
            for event in self._run.events
        )

    def _raises(self, step: PlanStep) -> bool:
        """Whether the step's tool raises its every failure; one that is gone by now is not known to."""
        tools = self._run.engine.registry
        return step.action != "skill" and step.tool in tools and tools.get(step.tool).spec.raises

    async def _grounds(self, step: PlanStep, attempt: AttemptState | None) -> str:
        """What the figures of an output are held against. Only what a model wrote can be invented; the evidence of a
        tool is the tool itself, and what a plain answer rests on is nowhere to be read."""
        if step.action == "skill":
            return await self._evidence(step, attempt)
        if not step.is_completion:
            return ""
        state, room = self._run.state, self._run.room
        found = await results(self._run)
        unread = bool(state.request.images) or any(message.images for message in state.request.messages or ())
        if not found or unread or asks_to_invent(state.question) or asks_to_invent(state.prompt):
            return ""
        recalled = state.retrieved
        parts = [state.prompt, state.question, room.system_prompt, room.persona]
        parts += [
            message.content for message in (*(state.request.messages or ()), *(recalled.history if recalled else ()))
        ]
        parts += [item.text for item in (recalled.items if recalled else ())]
        parts += [reason_of(state, step) for step in given_up(state)]
        for done, output in found:
            parts += [done.intent, args_text(dict(done.args)), output.text]
            parts += [json.dumps(output.value, ensure_ascii=False, default=str)]
            parts += [quote for source in output.sources for quote in (source.name, *source.quotes)]
        return "\n".join(parts)

    async def _evidence(self, step: PlanStep, attempt: AttemptState | None) -> str:
        """Everything the attempt had before it: the request, its arguments, what its tools returned."""
        parts = [self._run.state.prompt, self._run.state.question, step.intent]
        outputs = [self._run.state.step(dependency).output for dependency in step.depends_on]
        if attempt is not None:
            parts.append(json.dumps(dict(attempt.args), ensure_ascii=False, default=str))
            outputs += [step_output(call.returned) for call in attempt.calls if call.returned is not None]
        loaded = [await load(self._run, output) for output in outputs if output is not None]
        return "\n".join([*parts, *(output.text for output in loaded)])


def read_verdict(text: str) -> StepOutcome | None:
    """A verdict from a model's reply: strict JSON, fenced, or the last object in the text. None when unreadable."""
    text = _THINKING.sub("", text)
    if _UNENDED.search(text):  # a draft in thinking that was cut off is no verdict
        return None
    decoder = json.JSONDecoder()
    found: object = None
    end = 0
    for start in (match.start() for match in re.finditer(r"\{", text)):
        if start < end:  # inside the verdict that was read: what it quotes is not its own word
            continue
        try:
            candidate, after = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):  # no JSON, a number too long to read, brackets without end
            continue
        if isinstance(candidate, dict) and "outcome" in candidate:
            found, end = candidate, after
    if not isinstance(found, dict):
        return None
    word = str(found.get("outcome", "")).strip().upper()
    reason = found.get("reason")
    if word not in Outcome.__members__ or not isinstance(reason, str) or not reason.strip():
        return None
    fix = found.get("suggested_fix")
    return StepOutcome(
        outcome=Outcome(word),
        reason=reason.strip()[:1000],
        suggested_fix=str(fix).strip()[:1000] or None if fix else None,
        evidence=str(found.get("evidence") or "")[:1000],
        by="model",
    )
