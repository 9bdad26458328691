"""`classify_priority`: rates how urgent a report is, by the caller's fields, else by its words."""

import asyncio
import re
from collections.abc import Iterable, Iterator

from pydantic import Field

from agent.core.models import DeferredModel
from agent.tools import PlanHints, ToolContext, TypedTool
from gateway.features.documents.engine.search.severity import SEVERITIES, Severity, parse_severity
from gateway.features.incident.engine.text import cut_text

_STATED = re.compile(
    r"\b(?:(?P<code>P[0-5]|SEV[\s-]?[0-5])|(?:priority|severity)\s{0,2}(?:is|:|=)?\s{0,2}"
    r"(?P<word>[0-5]|blocker|critical|highest|high|major|urgent|medium|moderate|normal|low|minor|trivial))\b",
    re.IGNORECASE,
)
_SIGNS: tuple[tuple[Severity, str], ...] = (
    (
        "critical",
        r"(?:full|total|complete|major)\soutage|data\sloss|(?:security|data)\sbreach|ransomware|"
        r"(?:all|every)\s(?:users?|customers?)|(?:site|system|service|production|everything)\s(?:is|are)\s"
        r"(?:completely\s)?down|prod(?:uction)?\sdown|cannot\spay|payments?\s(?:are\s)?failing",
    ),
    (
        "high",
        r"outages?|unavailable|down(?!\w|load|stream)|crash(?:es|ed|ing)?|failures?|failing|errors?|latency|timeouts?|"
        r"degraded|degradation|urgent(?:ly)?|asap|immediately|many\s(?:users|customers)|security|vulnerability|deadline",
    ),
    (
        "medium",
        r"slow|intermittent(?:ly)?|sometimes|some\s(?:users|customers)|workaround|warnings?|incorrect|wrong|broken|bug|"
        r"delay(?:ed|s)?",
    ),
    (
        "low",
        r"typo|cosmetic|nice\sto\shave|feature\srequest|question|documentation|when\syou\shave\stime|"
        r"no\s(?:hurry|rush)|not\surgent|low\spriority|minor|wish",
    ),
)
_SIGN_PATTERNS = tuple((level, re.compile(rf"\b(?:{form})\b", re.IGNORECASE)) for level, form in _SIGNS)
_NEGATED = re.compile(
    r"\b(?:no|not|never|without|isn't|aren't|wasn't|resolved|fixed)\W+(?:\w+\W+){0,2}$", re.IGNORECASE
)
MAX_REASONS = 8


class ClassifyPriorityInput(DeferredModel):
    """Arguments of `classify_priority`."""

    text: str = Field(max_length=1_000_000, description="the report; its first 100,000 characters count")
    priority: str = Field(default="", max_length=100, description="priority in the caller's system, e.g. P2")
    severity: str = Field(default="", max_length=100, description="severity in the caller's system, e.g. SEV2")


class ClassifyPriorityOutput(DeferredModel):
    """The level and the reasons."""

    priority: Severity
    reasons: list[str]


class ClassifyPriorityTool(TypedTool[ClassifyPriorityInput, ClassifyPriorityOutput]):
    name = "classify_priority"
    description = (
        "Classify how urgent a report is: low, medium, high or critical, with reasons. A given priority or severity "
        "counts before the words."
    )
    is_opt_in = True
    keywords = ("priority", "severity", "urgent", "triage", "classify", "incident", "ticket", "critical")
    hints = PlanHints(intent="say how urgent it is", heading="Priority")

    async def run(self, args: ClassifyPriorityInput, context: ToolContext) -> ClassifyPriorityOutput:
        """Rates by the given fields, else by the text."""
        given = {"priority": args.priority, "severity": args.severity}
        level, reasons = await asyncio.to_thread(
            classify, args.text, {name: value for name, value in given.items() if value.strip()}
        )
        return ClassifyPriorityOutput(priority=level, reasons=reasons)

    def format_text(self, output: ClassifyPriorityOutput) -> str:
        return f"Priority: {output.priority} ({'; '.join(output.reasons)})"


def classify(text: str, given: dict[str, str]) -> tuple[Severity, list[str]]:
    """The level and its reasons. If several are given, the worst counts."""
    text = cut_text(text)
    known_levels = {name: level for name, value in given.items() if (level := parse_severity(value)) is not None}
    reasons = [
        f"the {name} {value!r} belongs to no known scale" for name, value in given.items() if name not in known_levels
    ]
    reasons = [reason[:200] for reason in reasons]
    stated = _find_stated(text)
    if known_levels:
        level = _get_worst(known_levels.values())
        reasons = [f"the {name} is {given[name][:60]}: {each}" for name, each in known_levels.items()] + reasons
        reasons += [
            f"the text says {word} ({other}), but the given value counts" for word, other in stated if other != level
        ]
        return level, reasons[:MAX_REASONS]
    if stated:
        level = _get_worst(other for _, other in stated)
        return level, ([f"the text says {word}: {other}" for word, other in stated] + reasons)[:MAX_REASONS]
    signs = list(_find_signs(text))
    if not signs:
        return "medium", [*reasons, "nothing in the text indicates another level"][:MAX_REASONS]
    raised = [sign for sign in signs if sign[0] != "low"]
    level = _get_worst(sign[0] for sign in raised or signs)
    return level, ([f"mentions {word!r}: {each}" for each, word in signs if each == level] + reasons)[:MAX_REASONS]


def _get_worst(levels: Iterable[Severity]) -> Severity:
    return max(levels, key=SEVERITIES.index)


def _find_stated(text: str) -> list[tuple[str, Severity]]:
    """The priorities that the text states, without duplicates."""
    stated: dict[str, Severity] = {}
    for match in _STATED.finditer(text):
        level = parse_severity(match["code"] or match["word"])
        if level is not None and len(stated) < MAX_REASONS:
            stated.setdefault(" ".join(match[0].split()), level)
    return list(stated.items())


def _find_signs(text: str) -> Iterator[tuple[Severity, str]]:
    seen: set[str] = set()
    for level, form in _SIGN_PATTERNS:
        for match in form.finditer(text):
            word = " ".join(match[0].lower().split())
            if word in seen or (level != "low" and _NEGATED.search(text[max(0, match.start() - 40) : match.start()])):
                continue
            seen.add(word)
            yield level, word
