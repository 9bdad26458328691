"""What a question asks for: the names and years it is about, its other telling words, and what kind of answer it
wants. What of it a place in the documents speaks of is for `scope.py`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from agent.grounded_answers.conditions import OF_AMOUNTS, VERSION, Condition, conditions_of
from agent.grounded_answers.names import Name, names
from agent.grounded_answers.sections import asked_section
from agent.grounded_answers.stances import Stance, asked_stance
from agent.grounded_answers.wording import is_light
from agent.text.stop_words import detect_question_language
from agent.text.terms import ALL_STOP_WORDS, fold, is_filler, is_space_separated, map_query_terms

Kind = Literal["when", "number", "money", "name", "any"]
"""What an answer must hold: something of time, a number, an amount of money, a name."""

_YEAR = re.compile(r"(?<![\d.,/-])(?:1[5-9]|20|21)\d\d(?![\d/-]|[.,]\d)")
_NUMBERED = re.compile(r"\b([^\W\d_]+)[ \u00a0](\d{1,5})(?![\w%]|[.,]\d)")
"""A word and its number, as in "Atlas 300" and "room 12"."""
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("when", re.compile(r"^(?!\W*(?:what|which|who|how|where|why)\b).*?\bwhen\b(?!\s+\w+ing\b)|"
                        r"\b(?:what (?:date|day|year|time)|which (?:date|day|year)|n\u00e4r|wann|"
                        r"quand|cu\u00e1ndo|quando|wanneer|hvorn\u00e5r|milloin)\b", re.IGNORECASE)),
    ("money", re.compile(r"\b(?:how much .*\b(?:costs?|paid|pay)|(?:price|costs?|fee) of|"
                         r"what (?:does|did|do) .* costs?|vad kostar|was kostet|combien co\u00fbte)\b", re.IGNORECASE)),
    ("number", re.compile(r"\b(?:how (?:many|much|long|often|old|far|high|wide|heavy|fast|big|tall|deep)|"
                          r"hur (?:m\u00e5nga|mycket|l\u00e4nge|ofta)|wie ?viele?|wie (?:lange|hoch|oft)|combien|"
                          r"cu\u00e1nt[oa]s?|quant[oaie]s?|hoeveel|hvor mange|montako)\b", re.IGNORECASE)),
    ("name", re.compile(r"^\W*(?:who|vem|wer|qui|qui\u00e9n|chi|quem|hvem|kuka) (?:is|was|are|were|\u00e4r|ist|war|"
                        r"est|es|\u00e8|\u00e9|er|on)\b", re.IGNORECASE)),
)  # fmt: skip
_MEASURE = re.compile(
    r"\bhow many ([^\W\d_]+(?:[ -][^\W\d_]+)?)|\bhow (wide|high|tall|deep|long|often|heavy|far|fast|big|large|old)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:how (?:do|does|can|should|is|are|to)|why|tell|explain|describe|summari[sz]e|list|rules?|"
    r"what (?:about|happens|if)|compare|everything|overview|give me|policy|steps|hur (?:g\u00f6r|ska)|"
    r"wie (?:kann|soll)|warum|varf\u00f6r|comment|pourquoi)\b",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\b(?:or|and|versus|vs|between|than|compared|och|eller|und|oder|et|ou|y|o)\b", re.IGNORECASE)

_POLAR = re.compile(
    r"^\W*(?:is|are|was|were|do|does|did|has|have|had|can|may|must|should|will|\u00e4r|f\u00e5r|kan|m\u00e5ste|har|ist|sind|darf|kann|"
    r"muss|hat)\b",
    re.IGNORECASE,
)
_PAST = re.compile(r"\bwhen (?:was|were|did|has|have|had)\b", re.IGNORECASE)
_ASKS_PLACE = re.compile(
    r"\b(?:which|what|vilken|vilket|welche[rsm]?)\s+(?:version|release|section|chapter|article|clause|item|meeting|"
    r"update|avsnitt|kapitel|utg\u00e5va|abschnitt)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Asked:
    """A question taken apart. `words` are its telling words by their terms, as they were written; `marks` the names
    and identifiers it is about."""

    question: str
    tongue: str
    marks: tuple[Name, ...]
    years: tuple[str, ...]
    words: dict[str, str]
    kind: Kind
    common: frozenset[str]
    """Words that are no names, whatever their first letter."""
    is_open: bool
    """Whether it asks to be told of something, rather than for one fact."""
    measures: tuple[str, ...]
    """What "how" goes with: "wide" of "how wide", "paid" and "days" of "how many paid days"."""
    is_between: bool
    """Whether what it is about may stand in several places: "A or B"."""
    conditions: tuple[Condition, ...] = ()
    """Numbers that say which of several things it is about."""
    section: str = ""
    """The number of the section it names."""
    stance: Stance | None = None
    """How those voted whom it asks for."""
    is_polar: bool = False
    """Whether it is answered by yes or no."""
    is_past: bool = False
    """Whether it asks when something was: no rule for what may be answers that."""
    asks_place: bool = False
    """Whether it asks for a version, section or meeting: what stands above the answer."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing tells what it is about."""
        return not (self.marks or self.years or self.words)


def asked_of(question: str, common: Iterable[str] = ()) -> Asked:
    """The question taken apart. `common` are words (folded) that are no names, whatever their first letter."""
    years, told = tuple(dict.fromkeys(_YEAR.findall(question))), detect_question_language(question)
    common = ALL_STOP_WORDS.union(common)
    numbered = _numbered(question, years)
    within = {word for mark in numbered for word in mark.words[0].split()}
    named = [
        mark
        for mark in names(question, common)
        if not within & set(mark.words)
        and mark.text not in years
        and (mark.start or mark.code or len(mark.words) > 1)  # the first word is written with a capital anyway
        and not (told == "de" and not mark.code and common.intersection(mark.words))
    ]
    versions = _versions(question)
    marks = (*numbered, *named, *versions)
    of_marks = {word for mark in marks for whole in mark.words for word in re.split(r"[\W_]+", whole)}
    shown = {fold(word): word for word in re.findall(r"[^\W_]+", question)}
    searched = map_query_terms(question)
    words = {
        term: shown.get(word, word)
        for term, word in ({} if ALL_STOP_WORDS.issuperset(searched.values()) else searched).items()
        if not (is_light(word) or is_filler(word) or word in of_marks or word in years or word.isdigit())
        and is_space_separated(word)
    }
    return Asked(
        question,
        told,
        marks,
        years,
        words,
        next((kind for kind, pattern in _KINDS if pattern.search(question)), "any"),
        common,
        _OPEN.search(question) is not None,
        _measures(question),
        _BETWEEN.search(question) is not None,
        conditions_of(question, frozenset((*within, *years, *(mark.words[0] for mark in versions)))),
        asked_section(question),
        asked_stance(question),
        _POLAR.match(question) is not None,
        _PAST.search(question) is not None,
        _ASKS_PLACE.search(question) is not None,
    )


def _measures(question: str) -> tuple[str, ...]:
    match = _MEASURE.search(question)
    told = re.split(r"[ -]", fold(match[1] or match[2])) if match else []
    return tuple(word for word in told if word not in ALL_STOP_WORDS)


def _versions(question: str) -> list[Name]:
    found = []
    for match in VERSION.finditer(question):
        number = next(group for group in match.groups() if group)
        found.append(Name(number, match.start(), match.end(), (number,), code=True))
    return found


def _numbered(question: str, years: tuple[str, ...]) -> list[Name]:
    """Names with a number ("Atlas 300"), and words with one at the end of what is said ("room 12?")."""
    found = []
    for match in _NUMBERED.finditer(question):
        word, number = match.groups()
        ends = not question[match.end() :].lstrip().rstrip("?.! ")
        if number in years or is_light(fold(word)) or not map_query_terms(word) or fold(word) in OF_AMOUNTS:
            continue
        if (word[0].isupper() and match.start()) or ends:
            found.append(Name(match[0], match.start(), match.end(), (fold(match[0]),), code=True))
    return found
