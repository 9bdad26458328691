"""`classify_priority`: how urgent a report is. What the caller's system says counts; else the report's own words."""

import asyncio
import re
from collections.abc import Iterable, Iterator

from pydantic import BaseModel, Field

from agent.knowledge.levels import LEVELS, Level, level_of
from agent.tools import ToolContext, TypedTool
from mcp_tools.builtin.incident.text import read

_STATED = re.compile(
    r"\b(?:(?P<code>P[0-5]|SEV[\s-]?[0-5])|(?:priority|severity)\s{0,2}(?:is|:|=)?\s{0,2}"
    r"(?P<word>[0-5]|blocker|critical|highest|high|major|urgent|medium|moderate|normal|low|minor|trivial))\b",
    re.IGNORECASE,
)
_SIGNS: tuple[tuple[Level, str], ...] = (
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
_FORMS = tuple((level, re.compile(rf"\b(?:{form})\b", re.IGNORECASE)) for level, form in _SIGNS)
_NEGATED = re.compile(
    r"\b(?:no|not|never|without|isn't|aren't|wasn't|resolved|fixed)\W+(?:\w+\W+){0,2}$", re.IGNORECASE
)
MAX_REASONS = 8


class ClassifyPriorityInput(BaseModel):
    """A report, and what is known of it elsewhere."""

    text: str = Field(max_length=1_000_000, description="the report; its first 100,000 characters count")
    priority: str = Field(default="", max_length=100, description="priority in the caller's system, e.g. P2")
    severity: str = Field(default="", max_length=100, description="severity in the caller's system, e.g. SEV2")


class ClassifyPriorityOutput(BaseModel):
    """The level, and why."""

    priority: Level
    reasons: list[str]


class ClassifyPriorityTool(TypedTool[ClassifyPriorityInput, ClassifyPriorityOutput]):
    """Says how urgent something is."""

    name = "classify_priority"
    description = (
        "Classify how urgent a report is: low, medium, high or critical, with reasons. A given priority or severity "
        "counts before the words."
    )
    by_name = True
    keywords = ("priority", "severity", "urgent", "triage", "classify", "incident", "ticket", "critical")
    Input = ClassifyPriorityInput
    Output = ClassifyPriorityOutput

    async def run(self, args: ClassifyPriorityInput, context: ToolContext) -> ClassifyPriorityOutput:
        """The level by what is given, else by what is written."""
        given = {"priority": args.priority, "severity": args.severity}
        level, reasons = await asyncio.to_thread(
            classify, args.text, {name: value for name, value in given.items() if value.strip()}
        )
        return ClassifyPriorityOutput(priority=level, reasons=reasons)

    def text(self, output: ClassifyPriorityOutput) -> str:
        """The level and its reasons in a sentence."""
        return f"Priority: {output.priority} ({'; '.join(output.reasons)})"


def classify(text: str, given: dict[str, str]) -> tuple[Level, list[str]]:
    """The level and the reasons for it. Of several that are given, the worst counts."""
    text = read(text)
    known = {name: level for name, value in given.items() if (level := level_of(value)) is not None}
    reasons = [
        f"the {name} {value!r} is of no scale that is known" for name, value in given.items() if name not in known
    ]
    reasons = [reason[:200] for reason in reasons]
    stated = _stated(text)
    if known:
        level = _worst(known.values())
        reasons = [f"the {name} is {given[name][:60]}: {each}" for name, each in known.items()] + reasons
        reasons += [
            f"the text says {word} ({other}), but what is given counts" for word, other in stated if other != level
        ]
        return level, reasons[:MAX_REASONS]
    if stated:
        level = _worst(other for _, other in stated)
        return level, ([f"the text says {word}: {other}" for word, other in stated] + reasons)[:MAX_REASONS]
    signs = list(_signs(text))
    if not signs:
        return "medium", [*reasons, "nothing in the text speaks for more or less"][:MAX_REASONS]
    raised = [sign for sign in signs if sign[0] != "low"]
    level = _worst(sign[0] for sign in raised or signs)
    return level, ([f"speaks of {word!r}: {each}" for each, word in signs if each == level] + reasons)[:MAX_REASONS]


def _worst(levels: Iterable[Level]) -> Level:
    return max(levels, key=LEVELS.index)


def _stated(text: str) -> list[tuple[str, Level]]:
    """The priorities that the text itself states, each once."""
    found: dict[str, Level] = {}
    for match in _STATED.finditer(text):
        level = level_of(match["code"] or match["word"])
        if level is not None and len(found) < MAX_REASONS:
            found.setdefault(" ".join(match[0].split()), level)
    return list(found.items())


def _signs(text: str) -> Iterator[tuple[Level, str]]:
    seen: set[str] = set()
    for level, form in _FORMS:
        for match in form.finditer(text):
            word = " ".join(match[0].lower().split())
            if word in seen or (level != "low" and _NEGATED.search(text[max(0, match.start() - 40) : match.start()])):
                continue
            seen.add(word)
            yield level, word
