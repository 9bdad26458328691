"""Passages that give different values for the same thing, to be shown as disagreeing.

A heuristic that would rather miss a conflict than see one: two sentences of different passages count only when each
says exactly one value ("is", "has", "costs" ...), of the same unit, when apart from it they say the same words (small
words, a few synonyms and words like "currently" aside), when their headings add nothing that tells them apart, and when
their documents are not of different years. It sees no conflict in tables, between paraphrases, or between languages.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.knowledge.tailor.models import document_name, headings_of
from agent.knowledge.tailor.names import names
from agent.knowledge.tailor.passages import Part, Passage, Quote
from agent.knowledge.tailor.values import Key, mentions
from agent.knowledge.terms import query_terms, terms

MAX_CONFLICTS = 3
LONG_WORDS = 40
"""A longer sentence says too much for its one number to be its point."""
LEAST_TERMS = 2
"""Terms beside the unit that two sentences must share to speak of the same thing."""

_NEUTRAL_WORDS = """
every each all any per annum year years yearly annual annually currently now today always normally usually generally
total exactly about approximately entitled entitlement receive receives get gets granted given allowed set fixed amount
amounts number is are be has have will shall must can may according varje alla år har får totalt uppgår är nu
"""
_NEUTRAL = frozenset(terms(_NEUTRAL_WORDS))
"""Words that do not change what a value is the value of."""
_OF_DOCUMENTS = frozenset(
    terms(
        "handbook handbooks policy policies guide guides manual rules rule regulations document documents report notes "
        "faq wiki page overview introduction old new older newer draft final version copy revised updated archive "
        "archived appendix annex chapter section part handbok handboken regler gammal gamla ny nya utkast kapitel"
    )
)
"""Words of headings that say which paper it is, and not what it is about."""
_SAME = {
    terms(word)[0]: terms(first)[0]
    for first, *others in (
        ("employee", "employees", "staff", "worker", "workers", "personnel"),
        ("holiday", "holidays", "leave", "vacation"),
        ("cost", "costs", "price", "prices", "fee", "fees"),
        ("anställd", "anställda", "medarbetare"),
    )
    for word in others
}
_UNIT = re.compile(r"[\s\u00a0-]*(?:(?P<sign>%|[€$£¥]|°\s?[CF])|(?P<word>[^\W\d_]+))")
_CURRENCY = re.compile(r"(?P<sign>[€$£¥]|\b(?:EUR|USD|GBP|SEK|NOK|DKK|CHF))\s?$")
_LETTER = re.compile(r"(?<![^\W_])[A-Z](?![^\W_])")
_SAYS = re.compile(
    r"(?:\b(?:is|are|was|were|be|been|has|have|had|gets?|gives?|receives?|costs?|takes?|lasts?|pays?|paid|earns?|equals?|"
    r"totals?|amounts?\s+to|within|är|har|får|kostar|tar|varar|utgör|ist|sind|hat|haben|kostet|dauert)|[:=])"
    r"(?:\W+\w+){0,3}\W*$",
    re.IGNORECASE,
)
"""A verb that says a value of something, at most three words before it: elsewhere a number is a mere circumstance."""
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20|21)\d\d(?!\d)|\b[QH][1-4]\b")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence with its one value."""

    quote: Quote
    chunk_id: str
    document: str
    values: frozenset[Key]
    about: frozenset[str]
    names: frozenset[tuple[str, ...]]
    context: frozenset[str]
    years: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sentences that give different values for the same thing."""

    first: Quote
    second: Quote


def conflicts(passages: Sequence[Passage]) -> list[Conflict]:
    """The disagreements among the passages, those of the better ones first; at most `MAX_CONFLICTS`."""
    by_subject: dict[tuple[frozenset[str], frozenset[tuple[str, ...]]], list[Statement]] = {}
    found: list[Conflict] = []
    for passage in passages:
        for part in passage.parts:
            statement = _statement(passage, part)
            if statement is None:
                continue
            same = by_subject.setdefault((statement.about, statement.names), [])
            other = next((one for one in same if _disagree(one, statement)), None)
            if other is not None and len(found) < MAX_CONFLICTS:
                found.append(Conflict(other.quote, statement.quote))
            same.append(statement)
    return found


def _statement(passage: Passage, part: Part) -> Statement | None:
    if part.piece.kind != "sentence" or len(part.text.split()) > LONG_WORDS or part.text.rstrip().endswith("?"):
        return None
    held = mentions(part.text)
    if len(held) != 1:
        return None
    value = held[0]
    if not _SAYS.search(part.text[: value.start]):
        return None
    rest = f"{part.text[: value.start]} {part.text[value.end :]}"
    unit = _unit(part.text, value.start, value.end)
    about = _subject(rest) | {unit}
    if len(about - {unit}) < LEAST_TERMS:
        return None
    chunk = passage.chunk
    place = " ".join((*headings_of(chunk), str(chunk.metadata.get("title") or ""), document_name(chunk)))
    return Statement(
        quote=Quote(passage.number, part.piece.start, part.piece.end),
        chunk_id=chunk.chunk_id,
        document=chunk.source_id,
        values=value.keys,
        about=about,
        names=frozenset(name.words for name in names(rest)) | {(letter,) for letter in _LETTER.findall(rest)},
        context=_subject(" ".join(headings_of(chunk))) - about - _OF_DOCUMENTS,
        years=frozenset(_YEAR.findall(place)),
    )


def _disagree(one: Statement, other: Statement) -> bool:
    if one.chunk_id == other.chunk_id or one.values & other.values:
        return False
    kinds = {key[0] for key in one.values} & {key[0] for key in other.values}
    return bool(kinds) and one.context == other.context and one.years == other.years


def _unit(text: str, start: int, end: int) -> str:
    """What a value counts: a sign, or the stem of the next word."""
    before, after = _CURRENCY.search(text[:start]), _UNIT.match(text, end)
    if before is not None:
        return before["sign"]
    if after is None:
        return ""
    if after["sign"]:
        return after["sign"]
    return (terms(after["word"]) or [""])[0]


def _subject(text: str) -> frozenset[str]:
    """What a sentence is about: its content words, synonyms made one."""
    return frozenset(_SAME.get(term, term) for term in query_terms(text) if term not in _NEUTRAL)
