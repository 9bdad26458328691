"""What a place in a passage speaks of: its own words, those of its table's head, its headings, document and paragraph,
and the names it still means. By that it is told whether a question is spoken of at all."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agent.grounded_answers.conditions import Condition, contradicts
from agent.grounded_answers.names import Name, names
from agent.grounded_answers.passages import Part, Passage
from agent.grounded_answers.question import Asked
from agent.grounded_answers.said_otherwise import said_by_form, said_to_the_contrary
from agent.grounded_answers.stances import takes
from agent.grounded_answers.values import mentions
from agent.grounded_answers.wording import asks_money, is_light, same_as
from agent.text.snowball import SNOWBALL_LANGUAGES, stem_snowball
from agent.text.terms import extract_terms, fold

LONG_PREFIX = 5
"""Letters two forms of a word must begin with together, where their stems differ."""
ALIKE = 0.75
"""The share of the longer word that these must be; `ALIKE_ELSEWHERE` where no stemmer knows the language."""
ALIKE_ELSEWHERE = 0.55
OPENS_WITH = 4
"""Characters before the first name of a sentence that is about it: an article."""
_IT = re.compile(r"\b(?:it|its|they|them|their|he|she|his|her|him)\b", re.IGNORECASE)
BASE_LETTERS = 4
_ENDING = re.compile(r"(?:ings?|ed|ers?|ages?|als?|ments?|es|e|s)$")
REPEATED = 6
"""Letters of a word whose "re-" may be left out: "repainted" is "painted"."""
_COMPOUNDS = frozenset({"sv", "de", "nl", "da", "no", "fi", ""})
_ANY_YEAR = re.compile(r"(?<![\d-])(?:1[5-9]|20|21)\d\d(?!\d)")
_WHEN = re.compile(
    r"\bq[1-4]\b|\b\d{1,2}/\d{2,4}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march|april|may|june|july|august|"
    r"september|october|november|december|spring|summer|autumn|winter|daily|nightly|weekly|monthly|yearly|annually|"
    r"every|each|day|days|night|week|weeks|month|months|year|years|quarter|hour|hours|minutes|noon|midnight|morning|"
    r"evening|weekends?|weekdays?|after|before|until|during|when|while|if|as soon as|once|always|never|immediately|"
    r"today|tomorrow|m\u00e5n|tis|ons|tors|fre|l\u00f6r|s\u00f6n)(?:dag|dagar)?\b|\b\w+(?:tag|tags|dag|dagar|dagen)\b|\b(?:lundi|mardi|"
    r"mercredi|jeudi|vendredi|samedi|dimanche|jour|semaine|mois|varje|jeden?|chaque)\b",
    re.IGNORECASE,
)
_PAST_DAY = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|yesterday|today|ago|"
    r"last (?:night|week|month|year|spring|summer|autumn|winter)|"
    r"january|february|march|april|june|july|august|september|october|november|december|century|centuries)\b",
    re.IGNORECASE,
)
_NO_WHEN = re.compile(
    r"\bfor (?:about |up to |at least )?[\w.,]+ (?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)\b"
    r"|\b(?:during|before|after|while|when|until) (?:the |an? |its |their )?(?P<what>[^\W\d_]+)",
    re.IGNORECASE,
)
"""What says for how long, or tells a time by a thing: no answer to "when" where it is the thing that is asked about."""
_NUMBER = re.compile(r"\d|\b(?:no|none|a|an|one|once|twice|both|half|single|daily|weekly|monthly|unlimited|as long as|"
                     r"until|indefinitely|always|never|ett|en|ein|eine|un|une)\b", re.IGNORECASE)  # fmt: skip
_TIME = re.compile(
    r"\b(?:seconds?|minutes?|hours?|nights?|days?|weeks?|fortnight|months?|quarters?|years?|until|till|forever|always|"
    r"indefinitely|as long as|min|hrs?|from|between|since)\b",
    re.IGNORECASE,
)
_OFTEN = re.compile(
    r"\b(?:every|each|per|once|twice|daily|nightly|hourly|weekly|monthly|quarterly|yearly|annually|times|never|always)\b",
    re.IGNORECASE,
)
_EVERY = re.compile(r"\b(?:every|each)\s+(?:[\w.,]+\s+)?\w+", re.IGNORECASE)
"""How often something is, which is not for how long."""
_LENGTH = re.compile(r"\d\s*(?:mm|cm|dm|m|km|metres?|meters?|kilomet(?:re|er)s?|feet|foot|ft|inch(?:es)?|miles?|"
                     r"yards?)\b",
                     re.IGNORECASE)  # fmt: skip
_WEIGHT = re.compile(r"\d\s*(?:mg|g|kg|t|tons?|tonnes?|pounds?|lbs?|grams?|kilos?|kilograms?)\b", re.IGNORECASE)
_UNITS = {
    **dict.fromkeys(("wide", "high", "tall", "deep", "far"), _LENGTH),
    **dict.fromkeys(("seconds", "minutes", "hours", "days", "weeks", "months", "years", "nights", "old"), _TIME),
    "long": re.compile(f"{_TIME.pattern}|{_LENGTH.pattern}", re.IGNORECASE),
    "heavy": _WEIGHT,
    "often": _OFTEN,
    **dict.fromkeys(("large", "big"), re.compile(r"\d")),
    "fast": re.compile(r"\d\s*(?:km/h|mph|m/s|knots?|rpm)\b", re.IGNORECASE),
}
"""How what is measured is written."""
_OF_AMOUNTS = frozenset(
    extract_terms("deposit rent salary wage fee fine tax interest budget cost price share premium bonus")
)
_COUNTED = frozenset({"people", "persons"})
_MONEY = re.compile(
    r"[\u20ac$\u00a3\u00a5]|\b(?:eur|euros?|usd|gbp|sek|nok|dkk|chf|dollars?|pounds?|crowns?|kronor|kr|cents?|centimes?|"
    r"francs?|pence|free|gratis|percent)\b|%",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Lack:
    """What of a question a place does not speak of: names and years, telling words, the kind of answer."""

    marks: tuple[str, ...] = ()
    years: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    kind: bool = False
    undated: bool = False
    """Whether the years lack because nothing there is dated."""

    @property
    def nothing(self) -> bool:
        """Whether it speaks of all."""
        return not (self.marks or self.years or self.words or self.kind)

    @property
    def told(self) -> tuple[str, ...]:
        """The words that lack, as they were written."""
        return tuple(dict.fromkeys((*self.marks, *self.years, *self.words)))

    @property
    def weight(self) -> int:
        """For comparing: what lacks names is further off."""
        return 10 * len(self.marks) + 10 * len(self.years) + 2 * len(self.words) + self.kind


NOTHING = Lack()


def lack(asked: Asked, passage: Passage, at: int) -> Lack:
    """What of the question `passage.parts[at]` does not speak of."""
    part = passage.parts[at]
    near = passage.around(at)
    own = part.text + part.head
    others = [one for one in asked.conditions if _is_of_another(one, own, near)]
    marks = tuple(mark.text for mark in asked.marks if not _means(passage, at, mark, asked.common))
    marks += tuple(one.text for one in others if one.is_label)
    years = tuple(year for year in asked.years if year not in own)
    if years and not _ANY_YEAR.search(own):
        years = tuple(year for year in years if year not in near)
    folded = frozenset(re.findall(r"[^\W_]+", fold(near)))
    held = passage.around_terms(at)
    words = tuple(
        word
        for term, word in asked.words.items()
        if not _holds(term, fold(word), held, folded, asked.tongue)
        and not (asks_money(term) and _MONEY.search(own))
        and not said_by_form(term, own)
        and not (asked.is_polar and said_to_the_contrary(term, own))
    )
    if asked.measures and is_kind(asked, own) and mentions(own):  # "how large": a number says it
        words = tuple(word for word in words if fold(word) not in asked.measures)
    words += tuple(one.text for one in others if not one.is_label)
    undated = bool(years) and not _ANY_YEAR.search(near)
    return Lack(marks, years, words, not is_kind(asked, own), undated)


def _is_of_another(condition: Condition, own: str, near: str) -> bool:
    """Whether a place says of another number what is asked of one: in its own words, else in those around it."""
    spoken = condition.term in extract_terms(own)
    return contradicts(condition, own) if spoken else contradicts(condition, near)


def is_kind(asked: Asked, own: str) -> bool:
    """Whether a place holds the kind of answer that is asked for. `own` are its words."""
    if asked.stance is not None and not takes(asked.stance, own):
        return False
    if asked.tongue not in ("en", ""):
        return True  # numbers and times are not known by their words there
    if asked.measures and not any(_measures(one, own) or _is_amount(one, asked, own) for one in asked.measures):
        return False
    match asked.kind:
        case "when":
            if asked.is_past:
                return bool(_ANY_YEAR.search(own) or _is_dated(own) or _PAST_DAY.search(own))
            timely = _NO_WHEN.sub(lambda match: match[0] if _is_new(match, asked) else " ", own)
            return bool(_WHEN.search(timely) or _ANY_YEAR.search(timely) or _is_dated(timely))
        case "number":
            return bool(_NUMBER.search(own) or mentions(own))
        case "money":
            return bool(_MONEY.search(own) or _has_amount(own))
        case "name":
            of_question = {word for mark in asked.marks for word in mark.words}
            told = [name for name in names(own, asked.common) if name.start or len(name.words) > 1]
            return any(not of_question & set(name.words) for name in told)
    return True


def _is_amount(measure: str, asked: Asked, own: str) -> bool:
    """Whether "high" asks for an amount ("how high is the deposit?"), and a place holds one."""
    return measure == "high" and not _OF_AMOUNTS.isdisjoint(asked.words) and bool(mentions(own))


def _measures(measure: str, own: str) -> bool:
    """Whether a place counts or measures what is asked: "how wide" wants "metres" or "width", "how many days" days."""
    units = _UNITS.get(measure)
    own = _EVERY.sub(" ", own) if measure == "long" else own
    if units is not None and units.search(own):
        return True
    if measure in ("times", "more", "much", "of") or same_as(extract_terms(measure)[0]) & frozenset(extract_terms(own)):
        return True
    return units is None and is_light(measure) and measure not in _COUNTED


def _is_new(match: re.Match[str], asked: Asked) -> bool:
    """Whether a time is told by something the question does not say itself."""
    what = match["what"]
    return what is not None and not any(term in asked.words for term in extract_terms(what))


def _is_dated(text: str) -> bool:
    """Whether a text holds a date or a time of day."""
    return any(kind in ("date", "time", "day") for one in mentions(text) for kind, _ in one.keys)


def _has_amount(text: str) -> bool:
    """Whether a text holds a number that is no date, time or year."""
    return any(
        kind == "number" and not _ANY_YEAR.fullmatch(value) for one in mentions(text) for kind, value in one.keys
    )


def _means(passage: Passage, at: int, mark: Name, common: frozenset[str]) -> bool:
    """Whether a place speaks of a name: it holds it, its table or headings do, or it stands behind a sentence that
    does, with no other name between."""
    part = passage.parts[at]
    if part.piece.kind == "heading":
        return part.spoken.holds(mark)
    if part.spoken.holds(mark) or any(one.holds(mark) for one in passage.above(at)) or _by_letters(mark, part.text):
        return True
    if _is_about_another(part, mark, common):
        return False
    for before in reversed(range(at)):
        other = passage.parts[before]
        if other.piece.kind in ("heading", "head", "code"):
            return False
        if other.spoken.holds(mark):
            return True
        if other.piece.kind == "sentence" and names(other.text, common):
            return False
    return False


def _is_about_another(part: Part, mark: Name, common: frozenset[str]) -> bool:
    """Whether a sentence begins with another name, and so is not about the one before; "it" may still be that."""
    first = next(iter(names(part.text, common)), None)
    return first is not None and first.start <= OPENS_WITH and not _IT.search(part.text) and first.words != mark.words


def _by_letters(mark: Name, text: str) -> bool:
    """Whether an abbreviation stands there in full: "HR" for "Human Resources"."""
    if not (mark.text.isupper() and mark.text.isalpha() and 2 <= len(mark.text) <= 5):
        return False
    letters = r"[a-z]*\W+".join(re.escape(letter) for letter in mark.text.lower())
    return re.search(rf"\b{letters}", text.lower()) is not None


def _holds(term: str, word: str, held: frozenset[str], words: Iterable[str], tongue: str) -> bool:
    if same_as(term) & held or (
        tongue in SNOWBALL_LANGUAGES and _stem(tongue, word) in {_stem(tongue, one) for one in words}
    ):
        return True
    if tongue == "en" and _base(word) in {_base(other) for other in words}:
        return True
    share = ALIKE if tongue == "en" else ALIKE_ELSEWHERE
    least = LONG_PREFIX if tongue == "en" else LONG_PREFIX - 1
    for other in words:
        common = _common(_once(word), _once(other))
        if common >= least and common >= share * max(len(_once(word)), len(_once(other))):
            return True
        if tongue in _COMPOUNDS and min(len(word), len(other)) >= LONG_PREFIX and (word in other or other in word):
            return True
    return False


def _stem(tongue: str, word: str) -> str:
    return word if word.isdigit() else stem_snowball(tongue, word)


def _base(word: str) -> str:
    """A word without the endings that make nouns of verbs and verbs of nouns: "storage" is "stored"."""
    bare = _ENDING.sub("", word)
    if len(bare) < BASE_LETTERS:
        return word
    return bare[:-1] if bare[-1] == bare[-2] and bare[-1] not in "aeiouls" else bare


def _once(word: str) -> str:
    """A word without its "re-"."""
    return word.removeprefix("re") if len(word) > REPEATED else word


def _common(one: str, other: str) -> int:
    """How many letters two words begin with together."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
