"""Passages that give different values for the same thing, to be shown as disagreeing.

A heuristic that would rather miss a conflict than see one: two sentences of different passages count only when each
says exactly one value ("is", "has", "costs" ...), of the same unit, when apart from it they say the same words (small
words, a few synonyms and words like "currently" aside), when their headings add nothing that tells them apart, and when
their documents are not of different years. It sees no conflict in tables, between paraphrases, or between languages.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.grounded_answers.models import document_name, headings_of
from agent.grounded_answers.names import names
from agent.grounded_answers.passages import Part, Passage, Quote
from agent.grounded_answers.values import Key, mentions
from agent.text.terms import extract_query_terms, extract_terms

MAX_CONFLICTS = 3
LONG_WORDS = 40
"""A longer sentence says too much for its one number to be its point."""
LEAST_TERMS = 2
"""Terms beside the unit that two sentences must share to speak of the same thing."""

MANY_TERMS = 4
"""Terms that two picked sentences must share where one says a word more."""

_NEUTRAL_WORDS = """
every each all any per annum year years yearly annual annually currently now today always normally usually generally
total exactly about approximately entitled entitlement receive receives get gets granted given allowed set fixed amount
amounts number is are be has have will shall must can may according varje alla år har får totalt uppgår är nu
"""
_NEUTRAL = frozenset(extract_terms(_NEUTRAL_WORDS))
"""Words that do not change what a value is the value of."""
_OF_DOCUMENTS = frozenset(
    extract_terms(
        "handbook handbooks policy policies guide guides manual rules rule regulations document documents report notes "
        "faq wiki page overview introduction old new older newer draft final version copy revised updated archive "
        "archived appendix annex chapter section part handbok handboken regler gammal gamla ny nya utkast kapitel"
    )
)
"""Words of headings that say which paper it is, and not what it is about."""
_SAME = {
    extract_terms(word)[0]: extract_terms(first)[0]
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
_GIVES = re.compile(
    r"(?:\b(?:is|are|was|were|has|have|had|may|can|must|will|shall|gets?|gives?|costs?|takes?|lasts?|pays?|opens?|claims?|"
    r"\u00e4r|har|f\u00e5r|kostar|kan|m\u00e5ste|ist|sind|hat|kostet|dauert|darf|muss|est|sont|a|co\u00fbte|dure|peut)|[:=])(?:\W+\w+){0,7}\W*$",
    re.IGNORECASE,
)
"""A verb before a value, as far as a sentence's middle lies between."""
_IS = re.compile(
    r"(?:\b(?:is|are|was|were|called|named|\u00e4r|heter|ist|hei\u00dft|est)|:)\s+(?:(?:in|at|by|from|i|av|\u00e0|von)\s+)?(?:the\s+)?$",
    re.IGNORECASE,
)
"""What stands right before the name that a sentence gives."""
_WHOEVER = frozenset(
    extract_terms("employee employees staff worker everybody everyone anybody person people member you we")
)
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
    dated: bool = False
    """Whether the documents are of different years, so that both may be right."""


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


def differing(passages: Sequence[Passage], quotes: Sequence[Quote]) -> list[Conflict]:
    """Sentences of an answer that give different values or names for the same thing, each of another document; at most
    `MAX_CONFLICTS`. What was picked for one question is more likely about the same, so that less has to agree than in
    `conflicts`: any verb gives a value, there may be several, and who gets something may be left out."""
    told = [one for quote in quotes if (one := _answer(passages[quote.number - 1], quote)) is not None]
    found: list[Conflict] = []
    for at, one in enumerate(told):
        other = next((other for other in told[:at] if _answers_differ(other, one)), None)
        if other is not None and len(found) < MAX_CONFLICTS:
            found.append(Conflict(other.quote, one.quote, dated=other.years != one.years))
    return found


def _answer(passage: Passage, quote: Quote) -> Statement | None:
    """A sentence with all its values, or with the name it ends with."""
    part = next((one for one in passage.parts if (one.piece.start, one.piece.end) == (quote.start, quote.end)), None)
    if part is None or part.piece.kind != "sentence" or len(part.text.split()) > LONG_WORDS:
        return None
    held = mentions(part.text)
    spoken = names(part.text)
    rest, keys, units = part.text, frozenset[Key](), frozenset[str]()
    if held and _GIVES.search(part.text[: held[0].start]):
        keys = frozenset().union(*(one.keys for one in held))
        units = frozenset(one.unit for one in held)
        for one in reversed(held):
            rest = f"{rest[: one.start]} {rest[one.end :]}"
    elif not held and spoken and _IS.search(part.text[: spoken[-1].start]):
        keys = frozenset({("name", " ".join(spoken[-1].words))})
        rest = part.text[: spoken[-1].start] + part.text[spoken[-1].end :]
    if not keys:
        return None
    chunk = passage.chunk
    about = frozenset(
        term for term in _subject(rest) if term not in _WHOEVER and term not in extract_terms(" ".join(units))
    )
    place = " ".join((*headings_of(chunk), str(chunk.metadata.get("title") or ""), document_name(chunk)))
    return Statement(
        quote=quote,
        chunk_id=chunk.chunk_id,
        document=document_name(chunk),
        values=keys,
        about=about | units,
        names=frozenset(name.words for name in names(rest)) | {(letter,) for letter in _LETTER.findall(rest)},
        context=frozenset(),
        years=frozenset(_YEAR.findall(place)),
    )


def _answers_differ(one: Statement, other: Statement) -> bool:
    if one.document == other.document or one.values & other.values or one.names != other.names:
        return False
    if {kind for kind, _ in one.values} != {kind for kind, _ in other.values}:
        return False
    shared, apart = one.about & other.about, one.about ^ other.about
    return len(shared) >= LEAST_TERMS and (not apart or (len(apart) == 1 and len(shared) >= MANY_TERMS))


def _unit(text: str, start: int, end: int) -> str:
    """What a value counts: a sign, or the stem of the next word."""
    before, after = _CURRENCY.search(text[:start]), _UNIT.match(text, end)
    if before is not None:
        return before["sign"]
    if after is None:
        return ""
    if after["sign"]:
        return after["sign"]
    return (extract_terms(after["word"]) or [""])[0]


def _subject(text: str) -> frozenset[str]:
    """What a sentence is about: its content words, synonyms made one."""
    return frozenset(_SAME.get(term, term) for term in extract_query_terms(text) if term not in _NEUTRAL)
