"""Finds the names in a text that its evidence does not hold.

A name is a sequence of two or more capitalised words, or one behind a title. German capitalises every noun, and every
language the first word of a sentence: there a sequence counts as a name if a given name, a legal form or a title shows
that it is one.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, lru_cache

from agent.text.common_names import COMMON_NAMES
from agent.text.dates import MONTHS
from agent.text.given_names import GIVEN_NAMES
from agent.text.number_words import NUMBER_WORDS
from agent.text.pieces import split_pieces
from agent.text.stop_words import BY_LANGUAGE, ENGLISH, detect_candidate_languages

MAX_REPORTED = 5
"""The search stops after this number of names."""
_MARKUP = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|\[\d{1,3}\]|(?<!\S)\S+@\S+", re.DOTALL)
_LABEL = re.compile(r"^[ \t>*_#-]*+(?:\d+[.)] )?[*_]{0,2}[^.:!?\n|]{1,60}(?::[*_]{0,2}|[*_]{2}:?)(?=\s)", re.MULTILINE)
"""The label of a line, "**Next Steps:**", whose words are capitalised like a title's."""
_WORD = re.compile(r"[^\W\d_]+(?:[-'\u2019][^\W\d_]+)*")
_CONNECTORS_WORDS = """
af av da de del den der di du la le van von y zu zur of the and
"""
_CONNECTORS = frozenset(_CONNECTORS_WORDS.split())
_TITLES_WORDS = """
mr mrs ms miss dr prof professor herr frau fru fröken doktor monsieur madame mademoiselle mme mlle m dir direktor
direktör signor señor señora herrn president ceo minister ministre kanzler inspektör docent docteur doctor maître sir
lady dame
"""
_TITLES = frozenset(_TITLES_WORDS.split())
_LEGAL_FORMS_WORDS = """
gmbh ag kg kgaa ug se ab hb oy oyj as asa aps sa sas sarl sàrl srl spa bv nv ltd limited plc inc corp corporation llc
llp co company foundation university institute bank group holding
"""
_LEGAL_FORMS = frozenset(_LEGAL_FORMS_WORDS.split())
_DAYS_WORDS = """
monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonnabend
sonntag måndag tisdag onsdag torsdag fredag lördag söndag lundi mardi mercredi jeudi vendredi samedi dimanche
"""
_DAYS = frozenset(_DAYS_WORDS.split())
_ROLES_WORDS = """
contact contacts owner owners manager managers director responsible ceo cfo cto chair chairman chairwoman author written
led supervisor deputy assignee assigned reviewer approver representative
zuständig ansprechpartner ansprechpartnerin geschäftsführer geschäftsführerin leiter leiterin verantwortlich
stellvertreter stellvertreterin autor autorin kontakt inhaber inhaberin
ansvarig kontaktperson kontakta chef vd ägare författare ställföreträdare handläggare
responsable contactez directeur directrice gérant gérante auteur propriétaire
"""
_ROLES = frozenset(_ROLES_WORDS.split())
"""Words behind which a person's name stands, perhaps with `is`, `by` or a colon between."""
_BEHIND_ROLE = re.compile(r"(?P<role>[^\W\d_]+)(?:\s(?:is|by|to|ist|är|est|sind|av|von|par))?\s?:?[\s*_]{1,4}$")
_CALL = re.compile(r"(?:contact|contactez|kontakta)\s", re.IGNORECASE)
_TURNED = re.compile(r"(?<![^\W\d_])(?P<last>[^\W\d_a-z][^\W\d_]+), (?P<first>[^\W\d_a-z][^\W\d_]+)")
"""A family name before the given name: "Lindberg, Anna"."""
_MIN_CERTAIN = 3
_MIN_TITLE_WORDS, _MAX_TITLE_WORDS = 2, 8
_NEAR_WORDS = 3
"""The words of a name may be this far apart in the evidence, in any order: "Lindqvist, Dr. Anna"."""


def find_unexplained_names(text: str, evidence: str) -> list[str]:
    """The names of `text`, as written, whose words do not stand beside each other in `evidence`."""
    if text[1:].islower() or not _CANDIDATE.search(text):
        return []
    plain = _MARKUP.sub(lambda match: " " * len(match[0]), text)
    known_words = _KnownWords(evidence, text)
    unexplained_names: dict[str, None] = {}
    for name, spelling in _iter_names(plain, known_words):
        if not known_words.contains(name):
            unexplained_names[spelling] = None
            if len(unexplained_names) == MAX_REPORTED:
                break
    return list(unexplained_names)


_CANDIDATE = re.compile(
    r"(?:[^\W\d_a-z][\w'\u2019-]{0,60}\.?|\b[a-zäöåéß]{1,14}\.?),?[ \u00a0](?:[a-z]{1,3} ){0,2}[^\W\d_a-z]"
)
"""Two capitalised words, or a title and one: most answers have none."""


class _KnownWords:
    """The words of the evidence with their places."""

    def __init__(self, text: str, answer: str) -> None:
        self._text = text
        self._answer = answer
        self._places: dict[str, list[int]] = {}
        self._lower: set[str] = set()
        for place, match in enumerate(_SPLIT_WORD.finditer(text)):
            word = match[0]
            self._places.setdefault(_normalize(word), []).append(place)
            if word[0].islower():
                self._lower.add(word)

    def contains(self, name: Sequence[str]) -> bool:
        """Whether all words of a name stand near each other, or the evidence abbreviates them to their initials."""
        words = [part for word in name for part in map(_normalize, _SPLIT_WORD.findall(word)) if len(part) > 1]
        if not words:
            return True
        may_be_short = len(words) > 1 and not any(map(_is_given_name, name))  # initials are no name of a person
        if may_be_short and "".join(word[0] for word in words) in self._abbreviations:
            return True
        places = [self._find(word) for word in words]
        return all(places) and any(
            all(any(abs(place - first) <= _NEAR_WORDS for place in others) for others in places[1:])
            for first in places[0]
        )

    def names_otherwise(self, given: str, family: str) -> bool:
        """Whether the evidence has one word only together with a capitalised one behind it, which is another one."""
        following = [
            match["next"] for match in re.finditer(rf"(?<!\w){re.escape(given)}(?:[ \u00a0](?P<next>\w+))?", self._text)
        ]
        return bool(following) and all(
            word and word[0].isupper() and _normalize(word) != _normalize(family) for word in following
        )

    @cached_property
    def _abbreviations(self) -> set[str]:
        """The words in capitals that are written so only; one of two letters must not be a stop word of the language of
        the evidence, or else of the answer: EU, WHO."""
        words = {match[0] for match in _ABBREVIATION.finditer(self._text)}
        languages = detect_candidate_languages(_ABBREVIATION.sub("", self._text)) or detect_candidate_languages(
            self._answer
        )
        ordinary = self._lower | {word for word in _list_stop_words(languages) if len(word) < _MIN_CERTAIN}
        return {word.casefold() for word in words if word.lower() not in ordinary}

    def has_word(self, word: str) -> bool:
        """Whether the evidence contains a word, in whatever case."""
        return bool(self._find(_normalize(word)))

    def has_lower(self, word: str) -> bool:
        """Whether the evidence contains a word in lower case, so that it is not a name."""
        return word.lower() in self._lower

    def _find(self, word: str) -> list[int]:
        """The places of a word, with or without the ending of a genitive or plural."""
        forms = [word, word.removesuffix("s"), f"{word}s", word.removesuffix("es"), word.removesuffix("n")]
        return next((self._places[form] for form in forms if form in self._places), [])


_SPLIT_WORD = re.compile(r"[^\W\d_]+")
_ABBREVIATION = re.compile(r"(?<![\w-])[A-ZÅÄÖÜÉ]{2,8}(?![\w.]?\w|-\d)")


_PLAIN_LETTERS = str.maketrans({"\u00f8": "o", "\u0142": "l", "\u00e6": "a", "\u0153": "o", "\u0111": "d"})
_UMLAUT = re.compile(r"(?<=[aou])e")


@lru_cache(maxsize=8192)
def _normalize(word: str) -> str:
    """A word without its accents: Mueller, Muller and M\u00fcller are one name."""
    return _UMLAUT.sub("", _remove_accents(word.casefold()).translate(_PLAIN_LETTERS))


def _iter_names(text: str, known: _KnownWords) -> Iterator[tuple[list[str], str]]:
    """Yields the words of each name, and the name as it is written."""
    whole = detect_candidate_languages(text)
    labels = [match.span() for match in _LABEL.finditer(text)]
    for piece in split_pieces(text):
        if piece.kind in ("heading", "head", "rule", "code") or _is_title_line(text, piece.start, piece.end):
            continue
        start = next((last for first, last in labels if first <= piece.start < last), piece.start)
        sentence = text[start : piece.end]
        languages = detect_candidate_languages(sentence) or whole
        may_be_german = not languages or "de" in languages
        for part in sentence.split("|") if piece.kind == "row" else (sentence,):
            for name in _iter_sentence_names(part, known, may_be_german=may_be_german):
                if _is_common(name):
                    continue
                yield name, _find_written(part, name)


def _is_title_line(text: str, start: int, end: int) -> bool:
    """Whether a piece is a line of its own before an empty one, without an end, and mostly in capitalised words."""
    line = text[start:end].rstrip()
    if (
        line[-1:] in ".!?:;,"
        or "\n" in line
        or not text.startswith("\n\n", end)
        or text[start - 1 : start] not in ("", "\n")
    ):
        return False
    words = _WORD.findall(line)
    if not _MIN_TITLE_WORDS <= len(words) <= _MAX_TITLE_WORDS or any(map(_is_given_name, words)):
        return False
    return 3 * len([word for word in words if word[0].isupper()]) >= 2 * len(words)


def _iter_sentence_names(sentence: str, known: _KnownWords, *, may_be_german: bool) -> Iterator[list[str]]:
    """Yields the names of one sentence or cell that have to be known."""
    yield from _iter_turned_names(sentence)
    for words, is_first, title, start in _iter_sequences(sentence):
        if person := _find_person_of_role(sentence, words, start, may_be_german=may_be_german):
            yield person
        elif title:
            name = _cut_name(words, may_be_german=may_be_german)
            # Nouns follow a name too, unless the evidence knows the first word as a given name only.
            yield words[:2] if len(name) < len(words) and known.names_otherwise(*words[:2]) else name
        elif not is_first or _is_given_name(words[0]):
            yield from _list_certain_names(words, may_be_german=may_be_german)
        elif len(words) == 2:
            # "Meanwhile Siemens": the first word is capitalised by its place, unless nothing of it is known.
            is_ordinary = known.has_lower(words[0]) or words[0].lower() in _list_stop_words()
            if not is_ordinary and not known.has_word(words[1]):
                yield from _list_certain_names(words, may_be_german=may_be_german)
        elif not known.contains(words):
            yield from _list_certain_names(words[1:], may_be_german=may_be_german)


def _iter_turned_names(sentence: str) -> Iterator[list[str]]:
    """Yields the names whose family name stands first, behind a role or alone: "Contact: Lindberg, Anna"."""
    alone = sentence.strip(" .*_\n\t")
    for match in _TURNED.finditer(sentence):
        if _is_given_name(match["first"]) and (alone == match[0] or _is_behind_role(sentence, match.start())):
            yield [match["first"], match["last"]]


def _find_person_of_role(sentence: str, words: Sequence[str], start: int, *, may_be_german: bool) -> list[str]:
    """The name of whom a role is said, "Contact Xiaoming Wang"; [] if the sequence is behind no role, or names a
    department. In a language that capitalises nouns, the role has to be said of somebody: "Leiter Vertrieb" is none."""
    if words[0].lower() in _ROLES and len(words) > 1 and (not may_be_german or _CALL.match(sentence, start)):
        words = words[1:]
    elif len(words) < 2 or not _is_behind_role(sentence, start):
        return []
    if any(word.lower() in COMMON_NAMES for word in words):
        return []
    return list(words[:2] if may_be_german else words)


def _is_behind_role(sentence: str, at: int) -> bool:
    role = _BEHIND_ROLE.search(sentence, max(0, at - 40), max(0, at))
    return role is not None and role["role"].lower() in _ROLES


def _is_common(words: Sequence[str]) -> bool:
    """Whether a name consists of words that need no evidence: a state, a product, a law, a greeting, a number."""
    return len(words) > 1 and all(
        word.lower() in COMMON_NAMES or word.lower() in NUMBER_WORDS or word.lower() in _list_stop_words()
        for word in words
    )


def _list_certain_names(words: list[str], *, may_be_german: bool) -> list[list[str]]:
    """The sequence as a name, or nothing if it may be a row of German nouns."""
    is_certain = not may_be_german or any(map(_is_given_name, words)) or _has_legal_form(words)
    name = _cut_name(words, may_be_german=may_be_german) if is_certain else []
    return [name] if len(name) > 1 else []


def find_certain_name(words: Sequence[str]) -> list[str]:
    """The part of a row of capitalised words that is a name in a language that capitalises every noun: what a given
    name begins, what follows a title, or what ends with a legal form; [] if nothing shows that it is one.
    """
    titles = [at for at, word in enumerate(words) if word.rstrip(".").lower() in _TITLES]
    if titles:
        return list(words[titles[-1] + 1 :])
    if not any(map(_is_given_name, words)) and not _has_legal_form(words):
        return []
    return _cut_name(list(words), may_be_german=True)


def _cut_name(words: list[str], *, may_be_german: bool) -> list[str]:
    """A sequence up to its legal form. Of a German one, only the given names and what follows them: the
    nouns before and behind a name are capitalised too."""
    end = next((at for at, word in enumerate(words, start=1) if at > 1 and word.lower() in _LEGAL_FORMS), 0)
    if end:
        return words[:end]
    if not may_be_german:
        return words
    start = next((at for at, word in enumerate(words) if _is_given_name(word)), -1)
    if start < 0:
        return words[:1]
    end = start + 1
    while end < len(words) and _is_given_name(words[end]):
        end += 1
    return words[start : end + 1]


def _find_written(sentence: str, name: Sequence[str]) -> str:
    """The words as they are in the sentence, with the small words between them."""
    match = re.search(r"[. \u00a0]{1,2}(?:[a-z]{1,3} ){0,2}".join(map(re.escape, name)), sentence)
    return match[0].strip() if match is not None else " ".join(name)


def _iter_sequences(sentence: str) -> Iterator[tuple[list[str], bool, bool, int]]:
    """Yields sequences of capitalised words; whether each begins the sentence and is behind a title, and its place."""
    words = list(_WORD.finditer(sentence))
    at = 0
    while at < len(words):
        if not _is_capitalised(words[at][0]):
            at += 1
            continue
        end = at + 1
        while (following := _find_following(sentence, words, end)) is not None:
            end = following + 1
        names = [word[0] for word in words[at:end] if _is_capitalised(word[0])]
        title = at > 0 and words[at - 1][0].lower() in _TITLES and _is_beside(sentence, words[at - 1], words[at])
        is_first = not sentence[: words[at].start()].strip(" \t*_>-\"'\u201c\u201e\u00ab(#0123456789.)")
        titles = [place for place, name in enumerate(names) if name.lower() in _TITLES]
        if titles:  # "Laut Frau Dr. Kranz"
            names, title = names[titles[-1] + 1 :], True
        if names and (len(names) > 1 or title):
            yield names, is_first and not title, title, words[at].start()
        at = end


def _find_following(sentence: str, words: Sequence[re.Match[str]], at: int) -> int | None:
    """The place of the next capitalised word of a sequence, which small words of names may precede."""
    for place in range(at, min(at + 3, len(words))):
        if not _is_beside(sentence, words[place - 1], words[place]):
            return None
        if _is_capitalised(words[place][0]):
            return place
        if words[place][0] not in _CONNECTORS or words[place][0] in ("and", "the"):
            return None
    return None


def _is_beside(sentence: str, one: re.Match[str], other: re.Match[str]) -> bool:
    between = sentence[one.end() : other.start()]
    is_initial = len(one[0]) == 1 or one[0].lower() in _TITLES
    return between in (" ", "\u00a0") or (between == ". " and is_initial)


def _is_capitalised(word: str) -> bool:
    """Whether a word can be of a name: no month, day or pronoun."""
    lower = word.lower()
    return word[0].isupper() and lower not in MONTHS and lower not in _DAYS and word != "I"


def _is_given_name(word: str) -> bool:
    return _remove_accents(word.partition("-")[0]) in _list_plain_names()


def _has_legal_form(words: Sequence[str]) -> bool:
    return any(word.lower() in _LEGAL_FORMS for word in words[1:])


def _remove_accents(word: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(char))


@cache
def _list_plain_names() -> frozenset[str]:
    return frozenset(map(_remove_accents, GIVEN_NAMES))


@cache
def _list_stop_words(languages: tuple[str, ...] = ()) -> frozenset[str]:
    """The stop words of some languages, or of all."""
    stop_words = {"en": ENGLISH, **BY_LANGUAGE}
    return frozenset(word for name in languages or stop_words for word in stop_words[name].split())
