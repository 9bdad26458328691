"""The deterministic checks of a step's output: what a rule can see without a model. Pure functions.

A rule gives a verdict; beside SUCCESS it may leave a *doubt*, which is what the judge is asked about.
"""

import json
import re
from dataclasses import dataclass

from agent.core.errors import FAILURES
from agent.core.events import StepOutput
from agent.core.models import Outcome, PlanStep, StepOutcome
from agent.execution.figures import invented_numbers, unexplained_figures
from agent.prompts import render

_OUTCOME_OF_ERROR = {
    "ERR_TOOL_TIMEOUT": Outcome.RETRY,
    "ERR_TOOL_FAILED": Outcome.RETRY,
    "ERR_TOOL_OUTPUT": Outcome.RETRY,
    "ERR_MODEL_OUTPUT": Outcome.RETRY,
    "ERR_TOOL_INPUT": Outcome.REPLAN,
    "ERR_TOOL_UNKNOWN": Outcome.REPLAN,
    "ERR_TOOL_DENIED": Outcome.REPLAN,
    "ERR_SKILL_UNKNOWN": Outcome.REPLAN,
    "ERR_SKILL_TURNS": Outcome.REPLAN,
    "ERR_REFERENCE": Outcome.REPLAN,
}
"""Errors that are not listed end the run: budgets, keys, models that cannot be reached, defects."""

_ERROR_TEXT = re.compile(
    r"^\W*(?:error|exception|traceback|fatal|unauthorized|forbidden|access denied|permission denied|"
    r"internal server error|bad gateway|service unavailable|too many requests|not authorized|"
    r"(?:request|call|operation|connection) (?:failed|refused|timed out)|http (?:4|5)\d\d)\b|"
    r"\b(?:quota|rate limit|limit) exceeded\b|\binvalid api key\b",
    re.IGNORECASE,
)
REPEATED_CHARS = 60
"""So much of what looks like an error message, found in the tool's own input, is a quotation."""
VALUE_CHARS = 200
"""A longer text without words is no single number, time or date."""
NAME_WORDS = 3
"""An argument of more words is no name."""
_SEARCHED = frozenset({"query", "question", "q", "search", "text", "task", "prompt", "pattern", "expression"})
_WORD = re.compile(r"[^\W\d_]{3,}")
_VALUE_WORDS = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]*\b|\b[A-Z]\w+/[A-Z]\w+|"
    r"\b(?:utc|gmt|[a-z]{1,3}t|eur|usd|gbp|sek|nok|dkk|chf|jpy|true|false|yes|no|none|approximately|about)\b",
    re.IGNORECASE,
)
"""The words that may stand in a number, a time or a date."""
_ACKNOWLEDGED = re.compile(
    r"\W*(?:ok(?:ay)?|done|saved|sent|remembered|stored|created|updated|deleted|removed|success(?:ful(?:ly)?)?)\W*",
    re.IGNORECASE,
)
_STOP = frozenset((
    "the", "and", "for", "with", "from", "into", "that", "this", "then", "what", "which", "who", "how", "are", "was",
    "were", "will", "would", "can", "could", "should", "its", "use", "get", "find", "give", "make", "step", "result",
    "results", "output", "using", "about", "answer", "text", "user", "request", "please", "read", "fetch", "search",
    "look", "page", "file", "list", "show", "tell", "out", "all", "any", "each", "their", "there", "them", "they",
    "you", "your", "our", "has", "have", "current", "currently", "today", "now", "latest",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Checked:
    """What the rules say. `doubt` is for the judge; only a SUCCESS leaves one."""

    verdict: StepOutcome
    doubt: str | None = None


def check(
    step: PlanStep,
    output: StepOutput,
    *,
    evidence: str = "",
    previous: StepOutput | None = None,
    needed_by_later: bool = False,
    wants_sources: bool = False,
    may_repeat: bool = True,
    heard: bool = False,
    raises: bool = False,
) -> Checked:
    """Judge an output by rules alone.

    `evidence` is everything the step had before it (task, inputs, tool results), empty for a completion whose figures
    need none; `previous` the output of the attempt before; `needed_by_later` whether a later step takes up this one's
    data; `wants_sources` whether the room asks for evidence; `may_repeat` whether the step has a further attempt;
    `heard` whether somebody has read the output already, as it was written; `raises` whether the tool raises its every
    failure, so that no error hides in what it returns.
    """
    if output.error_code == "ERR_GUARDRAIL_UNSAFE":
        return Checked(_unsafe(step, output, may_repeat=may_repeat and previous is None))
    if output.error_code is not None:
        return Checked(_of_error(step, output))
    if _empty(output):
        return Checked(_verdict(Outcome.RETRY, "the result is empty", "do the step again and return a result", step))
    # An answer may well speak of errors ("HTTP 404 means ..."); whoever wrote it reports failures by their code.
    quotes = step.is_completion or raises
    if not quotes and (hidden := hidden_error(output, _inputs(step))) is not None:
        return Checked(_verdict(Outcome.RETRY, f"the result is an error message: {hidden}", "try another way", step))
    if step.is_completion and (doubt := _doubt(step, output, evidence)) is not None:
        return _doubted_answer(doubt, again=may_repeat and not heard)
    if previous is not None and previous.text == output.text and previous.value == output.value:
        return Checked(StepOutcome(outcome=Outcome.REPLAN, reason="the second attempt gave the same result again"))
    if found_nothing(output):
        if needed_by_later:
            reason = "the search found nothing, and a later step needs its data"
            return Checked(StepOutcome(outcome=Outcome.REPLAN, reason=reason, suggested_fix="search in another way"))
        reason = f"{step.tool} ran and found nothing"
        return Checked(StepOutcome(outcome=Outcome.SUCCESS, reason=reason, evidence="none"))
    if wants_sources and step.action == "skill" and not output.sources:
        fix = "use the tools and cite what they return"
        return Checked(_verdict(Outcome.RETRY, "the result cites nothing where evidence was asked for", fix, step))
    return Checked(
        StepOutcome(outcome=Outcome.SUCCESS, reason="the result passed every check", evidence=output.text[:200]),
        doubt=_doubt(step, output, evidence),
    )


def _doubted_answer(doubt: str, *, again: bool) -> Checked:
    """An answer with figures from nowhere is written once more, or stands and is told to be doubtful."""
    if again:
        fix = "write only figures that stand in the results or follow from them, or leave them out"
        return Checked(StepOutcome(outcome=Outcome.RETRY, reason=doubt, suggested_fix=fix))
    return Checked(StepOutcome(outcome=Outcome.SUCCESS, reason="the answer stands; what is in doubt is told"), doubt)


def hidden_error(output: StepOutput, inputs: str = "") -> str | None:
    """The error that hides in a "successful" result, or None. What the tool was told to read (`inputs`) may speak of
    errors, and its result repeat it."""
    value = output.value
    if isinstance(value, dict):
        for key in ("error", "isError", "is_error", "errors"):
            if value.get(key):
                shown = value[key] if not isinstance(value[key], bool) else output.text
                return _short(shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False))
        status = value.get("status")
        if isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599:
            return f"status {status}"
        if status in ("error", "failed", "failure"):
            return f"status {status}"
    text = output.text.strip()
    # A long text that begins with "Error handling in Python ..." is a page about errors, not an error.
    if len(text) <= 300 and (match := _ERROR_TEXT.search(text)) is not None:
        said = " ".join(text[match.start() :].split())
        return None if said[:REPEATED_CHARS] in inputs else _short(said)
    return None


def _inputs(step: PlanStep) -> str:
    """The texts among a tool's arguments, in one line; those of a skill are the model's own words."""
    if step.action == "skill":
        return ""
    values = [value.get("$literal", "") if isinstance(value, dict) else value for value in step.args.values()]
    return " ".join(" ".join(value.split()) for value in values if isinstance(value, str))


def found_nothing(output: StepOutput) -> bool:
    """Whether this is the well-formed result of a search without hits."""
    value = output.value
    if not isinstance(value, dict):
        return False
    lists = [item for item in value.values() if isinstance(item, list)]
    return bool(lists) and not any(lists)


def _doubt(step: PlanStep, output: StepOutput, evidence: str) -> str | None:
    """What a rule cannot decide: does it fit the intent, is it invented?"""
    if figures := _figures(step, output, evidence):
        return "figures that stand nowhere in the evidence: " + ", ".join(figures[:5])
    wanted, told = _words(step.intent), _words(output.text)
    if step.is_completion or len(wanted) < 2 or _is_value(step, output.text):
        return None
    if not wanted & told:
        return "the result shares no word with the intent"
    subject = _subject(step)
    asked = wanted - subject
    if not asked or asked & told or _is_value_of(subject, output.text):
        return None
    return "the result shares no word with the intent but what it was asked about"  # as the weather at ACME does


def _figures(step: PlanStep, output: StepOutput, evidence: str) -> list[str]:
    """Figures a model may have invented. Answers made of checked claims were held to their passages before."""
    if output.effective != "llm" or output.tailored is not None:
        return []
    if step.is_completion:
        return unexplained_figures(output.text, evidence) if evidence else []
    return invented_numbers(output.text, evidence) if step.action == "skill" else []


def _subject(step: PlanStep) -> set[str]:
    """The words of the arguments that only name something, such as a place or a customer. What is searched for says
    what is wanted of it too; and who is told that something was done is told to whom."""
    if step.effect != "read":
        return set()
    named = (value for name, value in step.args.items() if name not in _SEARCHED and isinstance(value, str))
    return {word for value in named if len(value.split()) <= NAME_WORDS for word in _words(value)}


def _is_value(step: PlanStep, text: str) -> bool:
    """Whether a text is no more than a number, a time, a date, or the word that something was done: such results share
    no words with any intent."""
    if step.effect != "read" and _ACKNOWLEDGED.fullmatch(text):
        return True
    return len(text) <= VALUE_CHARS and _WORD.search(_VALUE_WORDS.sub(" ", text)) is None


def _is_value_of(subject: set[str], text: str) -> bool:
    """Whether a text is no more than the name of what was asked about, with a figure."""
    if len(text) > VALUE_CHARS or not any(sign.isdigit() for sign in text):
        return False
    return _words(_VALUE_WORDS.sub(" ", text)) <= subject


def _of_error(step: PlanStep, output: StepOutput) -> StepOutcome:
    code = output.error_code or "ERR_INTERNAL"
    outcome = _OUTCOME_OF_ERROR.get(code, Outcome.ABORT)
    reason = output.error or FAILURES[code].meaning
    return _verdict(outcome, reason, None if outcome is Outcome.ABORT else FAILURES[code].action, step)


def _unsafe(step: PlanStep, output: StepOutput, *, may_repeat: bool) -> StepOutcome:
    """What may not be said is said once more in another way, or not at all: no other plan makes it harmless."""
    reason = output.error or FAILURES["ERR_GUARDRAIL_UNSAFE"].meaning
    if may_repeat and step.effect != "effect":
        return StepOutcome(outcome=Outcome.RETRY, reason=reason, suggested_fix=render("answer_strict"))
    return StepOutcome(outcome=Outcome.ABORT, reason=reason)


def _verdict(outcome: Outcome, reason: str, fix: str | None, step: PlanStep) -> StepOutcome:
    """A side effect is never retried by a rule: doing it again is the planner's decision, with its result in view."""
    if outcome is Outcome.RETRY and step.effect == "effect":
        outcome, reason = Outcome.REPLAN, f"{reason} (a step with side effects is not repeated)"
    return StepOutcome(outcome=outcome, reason=reason, suggested_fix=fix)


def _empty(output: StepOutput) -> bool:
    return not output.text.strip() or output.value in ("", [], {})


def _words(text: str) -> set[str]:
    """Content words, cut to five letters so that plurals and endings meet."""
    return {word.lower()[:5] for word in _WORD.findall(text)} - {word[:5] for word in _STOP}


def _short(text: str, limit: int = 200) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[:limit] + "…"
