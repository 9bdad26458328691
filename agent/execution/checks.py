"""Deterministic checks of a step's output: `RULES`, in order. Pure functions.

A rule gives a verdict only if it is certain: an error status, an empty result, an error object, an output that repeats
the failed attempt. An empty text of a model or of a reading tool is a failure; a tool that changes something and
returns nothing has succeeded. A SUCCESS may carry a doubt (unexplained figures, words that may report a failure) for
the judge. The rules do not compare an output with its intent: shared words prove nothing.
"""

import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Final

from agent.answers.addresses import find_unexplained_addresses
from agent.answers.figures import find_unexplained_figures
from agent.answers.names import find_unexplained_names
from agent.core.events import StepOutput
from agent.core.failure_fields import is_blank
from agent.core.failures import FAILURES
from agent.core.models import JsonObject, Outcome, PlanStep, StepOutcome
from agent.core.plan_outcome import EMPTY_REPLIES
from agent.execution.hidden_errors import HiddenError, find_hidden_error
from agent.llm.prompts import render

_OUTCOME_OF_ERROR = {
    "ERR_TOOL_TIMEOUT": Outcome.RETRY,
    "ERR_TOOL_FAILED": Outcome.RETRY,
    "ERR_TOOL_OUTPUT": Outcome.RETRY,
    "ERR_MODEL_OUTPUT": Outcome.RETRY,
    # Not RETRY: it may have changed something before it failed.
    "ERR_SUBAGENT_FAILED": Outcome.REPLAN,
    "ERR_TOOL_UNKNOWN_OUTCOME": Outcome.REPLAN,
    "ERR_TOOL_INPUT": Outcome.REPLAN,
    "ERR_TOOL_UNKNOWN": Outcome.REPLAN,
    "ERR_TOOL_DENIED": Outcome.REPLAN,
    "ERR_SKILL_UNKNOWN": Outcome.REPLAN,
    "ERR_SKILL_TURNS": Outcome.REPLAN,
    "ERR_REFERENCE": Outcome.REPLAN,
}
"""Other errors end the run: budgets, keys, unreachable models, defects."""

_NOTHING_TEXTS = ("", '""', "[]", "{}", "null", "None")
"""How the text of a result says that there is no value."""
_TOOL_ACTIONS = ("tool", "memory")
REPEATED_REQUEST = "it only repeats the request"
"""The misfit of an answer without anything of its own."""
MIN_REPEATED_WORDS = 5
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The verdict of the rules.

    Only a SUCCESS carries a `doubt`. `figures` are the doubtful figures as the output writes them."""

    verdict: StepOutcome
    doubt: str | None = None
    figures: tuple[str, ...] = ()
    misfit: str = ""
    """How an accepted answer misses the requested form."""
    by_model: bool = False
    """Whether a model wrote an accepted output, and no passages were there to check it against."""
    refused_before: str = ""
    """Why the judge refused the same output in the attempt before."""


@dataclass(frozen=True)
class Inspection:
    """The output of an attempt, and what the rules need to know beside it."""

    step: PlanStep
    output: StepOutput
    _: KW_ONLY
    evidence: str = ""
    """The text that explains the figures; "" switches the check of figures off."""
    failed_before: StepOutput | None = None
    """The output of the previous attempt if a rule judged it a failure."""
    found_nothing: bool = False
    """Whether it is the result of a search without hits; see `is_empty_search`."""
    needed_by_later: bool = False
    """Whether a later step uses this step's data."""
    wants_sources: bool = False
    """Whether the room requires evidence."""
    may_repeat: bool = True
    """Whether the step may have another attempt."""
    may_look_again: bool = False
    """Whether the planner may call for what an answer holds without evidence."""
    was_read: bool = False
    """Whether the output was streamed to a reader."""
    raises_failures: bool = False
    """Whether the tool raises every failure, so that its result never hides an error."""
    misfit: str = ""
    """How an answer misses the form that the request asks for."""
    unasked: tuple[str, ...] = ()
    """Further sources that a search without hits should be repeated in."""

    @property
    def may_rewrite(self) -> bool:
        """Whether the text may be written once more: nobody has read it."""
        return self.may_repeat and not self.was_read

    @property
    def is_repeated(self) -> bool:
        """Whether the previous attempt failed with the same output."""
        before, output = self.failed_before, self.output
        return before is not None and (before.text, before.value) == (output.text, output.value)

    @property
    def is_by_model(self) -> bool:
        """Whether a model wrote the output, and its claims were not checked against passages."""
        step, output = self.step, self.output
        return output.effective == "llm" and output.tailored is None and (step.is_completion or step.action == "skill")

    @cached_property
    def hidden_error(self) -> HiddenError | None:
        """The error message that the result seems to be. An answer may describe errors ("HTTP 404 means ..."): its
        writer reports failures by an error code."""
        return None if self.step.is_completion or self.raises_failures else find_hidden_error(self.step, self.output)

    @cached_property
    def unexplained(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The figures, and the names and addresses, of a model's text that the evidence does not explain."""
        return list_unexplained(self.output.text, self.evidence) if self.evidence and self.is_by_model else ((), ())


def check_output(inspection: Inspection) -> CheckResult:
    """The verdict of the first rule that has one; else the output is accepted, with what is doubtful of it."""
    for rule in RULES:
        result = rule(inspection)
        if result is not None:
            return result
    return _accept(inspection)


def _accept(inspection: Inspection) -> CheckResult:
    reason, text = "the result passed every check", inspection.output.text
    figures, names = inspection.unexplained
    return CheckResult(
        StepOutcome(outcome=Outcome.SUCCESS, reason=reason, evidence=text[:200]),
        _describe_doubts(figures, names, inspection.hidden_error),
        (*figures, *names),
        by_model=inspection.is_by_model,
    )


def is_empty_search(output: StepOutput, args: JsonObject, *, is_search: bool) -> bool:
    """Whether the output is the well-formed result of a search without hits: an object with empty lists.

    `is_search` says that the tool declares itself a search. Of another tool everything else must be empty too, or
    repeat one of the call's `args`: a program that printed its result may well have written no files.
    """
    value = output.value
    if not isinstance(value, dict) or not any(isinstance(item, list) for item in value.values()):
        return False
    if any(item for item in value.values() if isinstance(item, list)):
        return False
    return is_search or all(is_blank(item) or item in args.values() for item in value.values())


def repeats_request(answer: str, request: str) -> bool:
    """Whether an answer has the words of the request, in their order, and no others. A few may be said back."""
    words = _WORD.findall(request.casefold())
    return len(words) >= MIN_REPEATED_WORDS and _WORD.findall(answer.casefold()) == words


def list_unexplained(text: str, evidence: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The figures of a text, and its names and addresses, that a model may have invented."""
    names = find_unexplained_names(text, evidence)
    addresses = find_unexplained_addresses(text, evidence) if "@" in text else ()
    return tuple(find_unexplained_figures(text, evidence)), (*names, *addresses)


def _describe_doubts(figures: tuple[str, ...], names: tuple[str, ...], hidden: HiddenError | None = None) -> str | None:
    """Describes what the evidence does not explain, and words that may report a failure; None without any."""
    doubts = [] if hidden is None else [f"what reads like an error message: {hidden.message}"]
    if figures:
        doubts.append("figures that follow from nothing in the evidence: " + ", ".join(figures))
    if names:
        doubts.append("names that are nowhere in the evidence: " + ", ".join(names))
    return "; ".join(doubts) or None


def _judge_unsafe_text(inspection: Inspection) -> CheckResult | None:
    """RETRY for an unsafe text, once, then ABORT: no other plan makes it harmless."""
    if inspection.output.error_code != "ERR_GUARDRAIL_UNSAFE":
        return None
    reason = inspection.output.error or FAILURES["ERR_GUARDRAIL_UNSAFE"].meaning
    if inspection.may_repeat and inspection.failed_before is None and inspection.step.effect != "effect":
        fix = render("answer_strict")
        return CheckResult(StepOutcome(outcome=Outcome.RETRY, reason=reason, suggested_fix=fix))
    return CheckResult(StepOutcome(outcome=Outcome.ABORT, reason=reason))


def _judge_error(inspection: Inspection) -> CheckResult | None:
    """What the code of an error stands for."""
    code = inspection.output.error_code
    if code is None:
        return None
    outcome = _OUTCOME_OF_ERROR.get(code, Outcome.ABORT)
    reason = inspection.output.error or FAILURES[code].meaning
    fix = None if outcome is Outcome.ABORT else FAILURES[code].action
    return CheckResult(_build_failure_verdict(outcome, reason, fix, inspection.step))


def _judge_empty_result(inspection: Inspection) -> CheckResult | None:
    """The verdict on an empty result. A tool's effect has happened: to call it a failure would be wrong, and to
    repeat it harmful. A read without a value found nothing. An empty text of a read or a model is a failure, unless a
    model's reply was cut off or withheld before its first word: the next one would be too.
    """
    step, output = inspection.step, inspection.output
    if not _is_empty(output) and not _is_nothing_of_tool(step, output):
        return None
    if step.action in _TOOL_ACTIONS and step.effect == "effect":
        reason = f"{step.tool} ran and returned nothing"
        return CheckResult(StepOutcome(outcome=Outcome.SUCCESS, reason=reason, evidence="none"))
    if _is_nothing_of_tool(step, output) and output.unwrapped_value != "":
        return CheckResult(_judge_search(step, needed_by_later=inspection.needed_by_later, unasked=()))
    if step.is_completion and output.finish_reason in ("length", "content_filter"):
        return CheckResult(StepOutcome(outcome=Outcome.SUCCESS, reason=EMPTY_REPLIES[output.finish_reason]))
    is_reply = step.is_completion or output.finish_reason != "stop"
    reason = EMPTY_REPLIES[output.finish_reason] if is_reply else "the result is empty"
    fix = "do the step again and return a result"
    return CheckResult(_build_failure_verdict(Outcome.RETRY, reason, fix, step))


def _judge_hidden_error(inspection: Inspection) -> CheckResult | None:
    """RETRY for a result that is an error message."""
    hidden, step = inspection.hidden_error, inspection.step
    if hidden is None or not _is_failure(hidden, step, is_repeated=inspection.is_repeated):
        return None
    reason = f"the result is an error message: {hidden.message}"
    return CheckResult(_build_failure_verdict(Outcome.RETRY, reason, "try another way", step))


def _judge_misfit(inspection: Inspection) -> CheckResult | None:
    """RETRY for an answer that is not in the requested form, once. Then it stays, and the run is partial."""
    misfit = inspection.misfit
    if not misfit:
        return None
    doubt = f"an answer that is not in the form the request asks for: {misfit}"
    if inspection.may_rewrite:
        is_repeated = misfit == REPEATED_REQUEST
        fix = "say what the results hold" if is_repeated else "reply with the JSON alone, with these problems corrected"
        return CheckResult(StepOutcome(outcome=Outcome.RETRY, reason=doubt, suggested_fix=fix))
    reason = "the answer stands, although it is not in the form the request asks for"
    return CheckResult(StepOutcome(outcome=Outcome.SUCCESS, reason=reason), doubt, misfit=misfit)


def _judge_doubtful_answer(inspection: Inspection) -> CheckResult | None:
    """The verdict on an answer with unexplained figures or names: REPLAN where the planner may still call for them,
    else RETRY, once. Then it stays, and they are marked."""
    figures, names = inspection.unexplained
    if not inspection.step.is_completion or not (figures or names):
        return None
    doubt = _describe_doubts(figures, names) or ""
    if inspection.may_look_again and not inspection.was_read:
        fix = "call the tool that finds or calculates it"
        return CheckResult(StepOutcome(outcome=Outcome.REPLAN, reason=doubt, suggested_fix=fix), doubt)
    if inspection.may_rewrite:
        kinds = " and ".join(kind for kind, values in (("figures", figures), ("names", names)) if values)
        fix = f"write only {kinds} that are in the results or follow from them, or leave them out"
        return CheckResult(StepOutcome(outcome=Outcome.RETRY, reason=doubt, suggested_fix=fix))
    reason = f"the answer stands; its unexplained {'figures' if figures else 'names'} are marked"
    return CheckResult(StepOutcome(outcome=Outcome.SUCCESS, reason=reason), doubt, (*figures, *names))


def _judge_repetition(inspection: Inspection) -> CheckResult | None:
    """REPLAN for an attempt that gives the failed result of the one before again."""
    if not inspection.is_repeated or inspection.hidden_error is not None:
        return None
    reason = "the second attempt gave the same result again"
    return CheckResult(StepOutcome(outcome=Outcome.REPLAN, reason=reason))


def _judge_empty_search(inspection: Inspection) -> CheckResult | None:
    """The verdict on a search without hits."""
    if not inspection.found_nothing:
        return None
    needed, unasked = inspection.needed_by_later, inspection.unasked
    return CheckResult(_judge_search(inspection.step, needed_by_later=needed, unasked=unasked))


def _judge_missing_sources(inspection: Inspection) -> CheckResult | None:
    """RETRY for a skill's text without sources in a room that requires evidence."""
    step = inspection.step
    if not inspection.wants_sources or step.action != "skill" or inspection.output.sources:
        return None
    reason, fix = "the result cites nothing where evidence was asked for", "use the tools and cite what they return"
    return CheckResult(_build_failure_verdict(Outcome.RETRY, reason, fix, step))


RULES: Final[tuple[Callable[[Inspection], CheckResult | None], ...]] = (
    _judge_unsafe_text,
    _judge_error,
    _judge_empty_result,
    _judge_hidden_error,
    _judge_misfit,
    _judge_doubtful_answer,
    _judge_repetition,
    _judge_empty_search,
    _judge_missing_sources,
)
"""In order: the first that has a verdict gives it."""


def _judge_search(step: PlanStep, *, needed_by_later: bool, unasked: tuple[str, ...]) -> StepOutcome:
    """REPLAN for a search without hits if a later step needs its data or other sources were not asked; else it has
    succeeded."""
    if needed_by_later:
        reason = "the search found nothing, and a later step needs its data"
        return StepOutcome(outcome=Outcome.REPLAN, reason=reason, suggested_fix="search in another way")
    if unasked:
        reason = f"{step.tool} found nothing, and other sources were not asked: {', '.join(unasked)}"
        fix = "ask those of them that may hold it; if none may, plan no steps"
        return StepOutcome(outcome=Outcome.REPLAN, reason=reason, suggested_fix=fix)
    return StepOutcome(outcome=Outcome.SUCCESS, reason=f"{step.tool} ran and found nothing", evidence="none")


def _is_failure(hidden: HiddenError, step: PlanStep, *, is_repeated: bool) -> bool:
    """Whether an error message in a result is the failure of the call. One that reading gives a second time, and that
    no field calls a failure, may be what was to be read: the judge decides, or the model that answers."""
    if hidden.certainty == "likely":
        return step.effect == "effect" or not is_repeated
    return hidden.certainty == "certain"


def _build_failure_verdict(outcome: Outcome, reason: str, fix: str | None, step: PlanStep) -> StepOutcome:
    """The verdict on a failure. A RETRY of a side effect becomes REPLAN: only the planner may repeat it."""
    if outcome is Outcome.RETRY and step.effect == "effect":
        outcome, reason = Outcome.REPLAN, f"{reason} (a step with side effects is not repeated)"
    return StepOutcome(outcome=outcome, reason=reason, suggested_fix=fix)


def _is_nothing_of_tool(step: PlanStep, output: StepOutput) -> bool:
    """Whether a tool returned nothing at all: no value, or an empty one, and nothing to say."""
    is_nothing = (
        output.unwrapped_value in (None, "", [], {}) and output.blob is None and output.text.strip() in _NOTHING_TEXTS
    )
    return is_nothing and step.action in _TOOL_ACTIONS


def _is_empty(output: StepOutput) -> bool:
    return not output.text.strip() or output.value in ("", [], {})
