"""`extract_entities`: finds tickets, services, errors, dates and other entities by their form."""

import asyncio
import re
from typing import Literal

from pydantic import Field

from agent.answers.names import find_certain_name
from agent.core.models import DeferredModel, FrozenModel
from agent.text.dates import MONTHS, WEEKDAYS
from agent.text.given_names import GIVEN_NAMES
from agent.text.stop_words import ENGLISH, detect_candidate_languages
from agent.tools import PlanHints, ToolContext, TypedTool
from gateway.features.incident.engine.due_phrases import load_weekdays
from gateway.features.incident.engine.text import cut_text

MAX_ENTITIES = 200
EntityType = Literal[
    "ticket", "severity", "service", "host", "error", "symptom", "url", "email", "ip", "version", "date", "measure",
    "name",
]  # fmt: skip

_SERVICE_ENDINGS = (
    "api|service|svc|worker|gateway|db|cache|proxy|queue|server|web|app|store|job|cron|bus|cdn|bucket|cluster|"
    "frontend|backend|scheduler|consumer|producer|daemon|agent|router|index|pipeline|prod|staging"
)
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)[a-z]{0,6}"
_STANDARDS = "UTF SHA ISO RFC AES RSA MD TLS SSL HTTP IPV COVID CVE WEB SEV EC BASE GPT US EU"
_STANDARD_PREFIXES = frozenset(_STANDARDS.split())

_CAPITALISED = r"[A-Z][\w'-]{1,40}"
_NAMED_MONTHS = GIVEN_NAMES | {"april", "june", "may"}
"""Months that are given names too, before another word."""
_STOP_WORDS = "|".join(ENGLISH.split())
"""A sentence that begins with one of these begins with no name. Else two words with capitals are one: Anna Berg."""

_PATTERNS: tuple[tuple[EntityType, re.Pattern[str]], ...] = (
    ("url", re.compile(r"https?://[^\s<>\"'`\])}]{1,500}", re.IGNORECASE)),
    ("email", re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")),
    ("ticket", re.compile(r"\b(?:[A-Z][A-Z0-9]{1,9}-\d{1,7}|(?:INC|CHG|PRB|REQ|RITM|CS|TASK)\d{4,10})\b")),
    ("severity", re.compile(r"\b(?:P[0-5]|SEV[\s-]?[0-5]|(?:priority|severity)\s{0,2}[0-5])\b", re.IGNORECASE)),
    (
        "error",
        re.compile(
            r"\b(?:HTTP\s?(?:status\s)?[45](?:\d\d|xx)|[45](?:\d\d(?=\s(?:errors?|responses?|status|codes?)\b)|xx)"
            r"|ERR_[A-Z0-9_]{2,60}|ORA-\d{4,5}|CVE-\d{4}-\d{4,7}|SIG[A-Z]{3,5}"
            r"|E(?:CONN[A-Z]{3,12}|TIMEDOUT|PIPE|ACCES|NOENT|NOSPC|MFILE|HOSTUNREACH)"
            r"|(?:[A-Z][a-zA-Z0-9]{1,60})(?:Error|Exception|Timeout))\b"
        ),
    ),
    (
        "host",
        re.compile(
            r"(?<![\w./@-])(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){2,8}[a-z]{2,24}(?::\d{2,5})?(?![\w/-]|\.\w)"
        ),
    ),
    ("ip", re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2})?\b")),
    (
        "date",
        re.compile(
            r"\b(?:\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?Z?)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
            rf"|\d{{1,2}}\s{_MONTH}(?:\s\d{{4}})?|{_MONTH}\s\d{{1,2}}(?:,?\s\d{{4}})?|\d{{1,2}}:\d{{2}}(?:\sUTC|Z)?)\b"
        ),
    ),
    ("version", re.compile(r"\bv\d{1,6}(?:\.\d{1,6}){0,3}\b|\b\d{1,6}\.\d{1,6}\.\d{1,6}(?:-[\w.]{1,20})?\b")),
    ("service", re.compile(rf"\b[a-z][a-z0-9]{{0,30}}(?:[-_][a-z0-9]{{1,30}}){{0,5}}[-_](?:{_SERVICE_ENDINGS})\b")),
    (
        "measure",
        re.compile(
            r"(?<![\w.])\d{1,12}(?:[.,]\d{1,6})?\s?(?:%|percent\b|ms\b|s\b|sec(?:onds?)?\b|min(?:utes?)?\b|h\b|hours?\b|"
            r"days?\b|[kMGT]i?B\b|rps\b|users?\b|customers?\b|requests?\b|errors?\b)"
        ),
    ),
    (
        "symptom",
        re.compile(
            r"\b(?:outages?|downtime|unavailab(?:le|ility)|latency|timeouts?|timed? out|errors?|failures?|failing|"
            r"fails?|crash(?:es|ed|ing)?|data loss|corruption|memory leaks?|deadlocks?|degrad(?:ed|ation)|"
            r"slow(?:ness|down)?|breach|broken|stuck|duplicates?|missing|rejected|throttl(?:ed|ing)|disk full|"
            r"out of memory)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "name",
        re.compile(rf"(?<=[a-z,;:]\s)(?!(?:I|The|A|An|We|It|This|That|On|In|At|By|And|But)\b){_CAPITALISED}"
                   rf"(?:\s{_CAPITALISED}){{0,3}}"
                   rf"|(?:\A|(?<=[.!?]\s)|(?<=\n))(?!(?i:{_STOP_WORDS})\b){_CAPITALISED}(?:\s{_CAPITALISED}){{1,3}}"),
    ),
)  # fmt: skip
"""In order of precedence: what one form has taken, a later one does not see."""


class ExtractEntitiesInput(DeferredModel):
    """Arguments of `extract_entities`."""

    text: str = Field(max_length=1_000_000, description="the text to read; its first 100,000 characters count")


class Entity(FrozenModel):
    """An entity as it is first written in the text, and how often it occurs."""

    text: str
    type: EntityType
    start: int = Field(description="where it stands first, in characters")
    count: int = 1


class ExtractEntitiesOutput(DeferredModel):
    """The entities in the order of the text, without duplicates."""

    entities: list[Entity]


class ExtractEntitiesTool(TypedTool[ExtractEntitiesInput, ExtractEntitiesOutput]):
    name = "extract_entities"
    description = (
        "List what a report or text names: tickets, services, hosts, severities, errors, symptoms, dates, measures, "
        "addresses, names."
    )
    is_opt_in = True
    keywords = ("entity", "entities", "extract", "incident", "names", "services", "tickets", "report")
    hints = PlanHints(intent="name what the text speaks of", heading="Named in the text")

    async def run(self, args: ExtractEntitiesInput, context: ToolContext) -> ExtractEntitiesOutput:
        return ExtractEntitiesOutput(entities=await asyncio.to_thread(extract_entities, args.text))

    def format_text(self, output: ExtractEntitiesOutput) -> str:
        if not output.entities:
            return "The text names nothing that is known by its form."
        kinds = dict.fromkeys(entity.type for entity in output.entities)
        return "\n".join(
            f"- {kind}: " + ", ".join(entity.text for entity in output.entities if entity.type == kind)
            for kind in kinds
        )


def extract_entities(text: str) -> list[Entity]:
    """The entities of the text in order, at most `MAX_ENTITIES`."""
    text = cut_text(text)
    is_matched = bytearray(len(text))
    entities: dict[tuple[EntityType, str], Entity] = {}
    german = _GermanLines(text)
    for kind, form in _PATTERNS:
        for match in form.finditer(text):
            if any(is_matched[match.start() : match.end()]):
                continue
            is_matched[match.start() : match.end()] = b"\x01" * len(match[0])
            if _is_standard(kind, match[0]):
                continue
            text_form = match[0].rstrip(".,;:!?'")
            start = match.start()
            if kind == "name":
                text_form, skipped = _remove_calendar_words(text_form)
                start += skipped
                if text_form and german.holds(match.start()):
                    text_form, skipped = _keep_certain_name(text_form)
                    start += skipped
                if not text_form:
                    continue
            key = (kind, text_form.casefold())
            earlier = entities.get(key)
            if earlier is not None:
                entities[key] = earlier.model_copy(update={"count": earlier.count + 1})
            else:
                entities[key] = Entity(text=text_form, type=kind, start=start)
    return sorted(entities.values(), key=lambda entity: entity.start)[:MAX_ENTITIES]


class _GermanLines:
    """Which lines of a text are German, where every noun has a capital; a line that does not say is like the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: dict[int, bool] = {}

    def holds(self, at: int) -> bool:
        """Whether the line with this place is German."""
        start = self._text.rfind("\n", 0, at) + 1
        if start not in self._known:
            end = self._text.find("\n", at)
            parts = (self._text[start : end if end >= 0 else None], self._text)
            detected = (languages for part in parts if len(languages := detect_candidate_languages(part)) == 1)
            self._known[start] = next(detected, ()) == ("de",)
        return self._known[start]


def _keep_certain_name(nouns: str) -> tuple[str, int]:
    """The name among German nouns, and how many characters come before it; empty if none of them is surely one."""
    words = find_certain_name(nouns.split())
    name = " ".join(words)
    return (name, nouns.index(name)) if words else ("", 0)


def _remove_calendar_words(name: str) -> tuple[str, int]:
    """Removes days and months before a name and days after it; the name and how many characters came before it.

    Empty if no name is left. A month that people are called after (`April Jones`) stays before another word.
    """
    words = list(re.finditer(r"\S+", name))
    if all(_is_calendar_word(word[0], is_alone=True) or _is_short_day(word[0]) for word in words):
        return "", 0
    first, last = 0, len(words)
    while first < last and _is_calendar_word(words[first][0], is_alone=last - first == 1):
        first += 1
    while first < last and _is_weekday(_drop_possessive(words[last - 1][0])):
        last -= 1
    if last - first < min(2, len(words)):
        return "", 0
    start = words[first].start()
    return name[start : words[last - 1].end()], start


def _is_short_day(word: str) -> bool:
    """Whether a word is the short name of a day, such as `Mon`, which nobody is called."""
    plain = _drop_possessive(word).rstrip(".")
    return plain in load_weekdays("abbreviated") and plain not in GIVEN_NAMES


def _is_calendar_word(word: str, *, is_alone: bool) -> bool:
    plain = _drop_possessive(word)
    return _is_weekday(plain) or (plain in MONTHS and len(plain) > 2 and (is_alone or plain not in _NAMED_MONTHS))


def _is_weekday(word: str) -> bool:
    """Whether a word is the name of a day, or of several such days: `Mondays`, `montags`."""
    return word in WEEKDAYS or word.removesuffix("s") in WEEKDAYS


def _drop_possessive(word: str) -> str:
    """The word without the ending of a possessor: `Monday's`, `Mondays'`."""
    return word.casefold().removesuffix("'s").removesuffix("'")


def _is_standard(kind: EntityType, text_form: str) -> bool:
    """Whether it is the name of a standard, which looks like a ticket: UTF-8, ISO-8601."""
    return kind == "ticket" and text_form.split("-", 1)[0] in _STANDARD_PREFIXES
