"""Turns text into search terms, the same way for every driver, for chunks and queries: fold, split into words, stem.

English words get Porter stems, Arabic words light stems; scripts without spaces become pairs of characters. A passage
that is detected to be in another language with a stemmer gets stems of that language, prefixed with its code, so that
they never match English stems; a query is searched by both. Words of other scripts stay whole. A query has no syntax.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from agent.text.snowball import stem_snowball
from agent.text.stemmer import stem_arabic, stem_porter
from agent.text.stop_words import BY_LANGUAGE, COMMON_STOP_WORDS, ENGLISH, detect_candidate_languages
from agent.text.units import UNITS

MAX_QUERY_TERMS = 24
"""Query terms that are searched; more take time and do not improve the results."""
MAX_TERM_CHARS = 64
"""Longer runs of letters are data, not words, and are truncated."""

_OPTIONAL_SIGNS = dict.fromkeys(
    (
        *range(0x0300, 0x0370), *range(0x0591, 0x05BE), 0x05BF, *range(0x05C1, 0x05C8), *range(0x0610, 0x061B),
        0x0640, *range(0x064B, 0x0660), 0x0670, *range(0x06D6, 0x06EE), 0x00AD, 0x200C, 0x200D,
    )
)  # fmt: skip
"""Optional in writing: accents, Hebrew and Arabic vowel points, the Arabic tatweel, invisible joiners."""
_FOLDING = {
    **_OPTIONAL_SIGNS, ord("ى"): "ي", ord("ی"): "ي", ord("ک"): "ك", ord("ة"): "ه",  # noqa: RUF001 - Arabic
    **{0x0660 + digit: str(digit) for digit in range(10)}, **{0x06F0 + digit: str(digit) for digit in range(10)},
}  # fmt: skip
_MARKS = "".join(chr(code) for code in range(0x0900, 0x1D00) if unicodedata.category(chr(code)) in {"Mn", "Mc"})
"""Vowel signs of Indian and South-East Asian scripts, which Python does not count as letters."""
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""
_ASCII_WORD = re.compile("[a-z0-9]+")
_WORD = re.compile(f"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\\W_{_MARKS}][{_MARKS}]*)+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_IS_LATIN = re.compile("[a-z\u00df-\u024f]+")
_LANGUAGE_SEPARATOR = "\u00b7"
"""Separates a language code from a stem. It is not a letter, so that no word can look like a stem."""
_IS_ARABIC = re.compile("[\u0620-\u06ff]")

_FILLER_TEXT = """
according anybody anyone anything available describe detail details discuss document documents exist existing exists
explain file files find get give given happen happened happens info information know known list look many mean means
much need often page pages people please question regarding related rule rules say says show someone something
summarise summarize summary tell thing things understand use used using want work works
befinden befindet befinner behöver behövs beträgt braucht brauchen dauert findet gilt gäller heißt heter hoch händer hög
höchstens högst kosta kostar kostet krävs lange liegen ligger liegt länge oft ofta passiert sker stänger viel viele
varar öppnar öffnet schließt
"""
"""Words that belong to asking rather than to the topic. They are searched, but weigh little for coverage."""


def extract_terms(text: str, language: str = "") -> list[str]:
    """The terms of a text in order, stop words included, as an index stores them.

    `language` is one of `SNOWBALL_LANGUAGES`, or empty if no such language was detected.
    """
    if language:
        return [term for word in _WORD.findall(_normalize_accented(text)) for term in _stem_in_language(language, word)]
    if text.isascii():
        return [_stem_english(word[:MAX_TERM_CHARS]) for word in _ASCII_WORD.findall(text.lower())]
    terms: list[str] = []
    for word in _WORD.findall(fold(text)):
        terms += _stem_folded_word(word)
    return terms


def extract_query_terms(query: str) -> list[str]:
    """The distinct search terms of a query in order.

    Stop words are left out unless there is nothing else. Of more than `MAX_QUERY_TERMS` terms, the most frequent stay.
    """
    return list(map_query_terms(query))


def map_query_terms(query: str) -> dict[str, str]:
    """The terms of `extract_query_terms`, each with the word it came from."""
    words, content = _split_query(query)
    counts: Counter[str] = Counter()
    words_by_term: dict[str, str] = {}
    for word in content or words:
        for term in _stem_folded_word(word):
            counts[term] += 1
            words_by_term.setdefault(term, term if _IS_UNSPACED.match(word) else word)
    chosen = {term for term, _ in counts.most_common(MAX_QUERY_TERMS)}
    return {term: word for term, word in words_by_term.items() if term in chosen}


def has_content_words(query: str) -> bool:
    """Whether a query has words besides stop words."""
    return bool(_split_query(query)[1])


def is_keywords(query: str) -> bool:
    """Whether a query has no stop words, as a list of keywords has none and a question has some."""
    words, content = _split_query(query)
    return words == content


def _split_query(query: str) -> tuple[list[str], list[str]]:
    """The folded words of a query, and those of them that are not stop words."""
    words = [word[:MAX_TERM_CHARS] for word in _WORD.findall(fold(query))]
    languages = detect_candidate_languages(query)
    stop_words = (
        _COMMON_STOP_WORDS
        if "en" in languages
        else _COMMON_STOP_WORDS.union(*(_STOP_WORDS_BY_LANGUAGE[name] for name in languages))
    )
    return words, [word for word in words if word not in stop_words]


def expand_query_terms(query: str, languages: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The terms of `extract_query_terms`, each with its stems in the given languages, itself included.

    Two terms with a common stem in one of the languages become one.
    """
    words_by_term = map_query_terms(query)
    written = {fold(word): word for word in _WORD.findall(_normalize_accented(query))} if languages else {}
    variants: dict[str, tuple[str, ...]] = {}
    key_by_variant: dict[str, str] = {}
    for term, word in words_by_term.items():
        own = [
            stem
            for one in languages
            for stem in _stem_in_language(one, written.get(word, word))
            if is_space_separated(word)
        ]
        key = next((key_by_variant[one] for one in own if one in key_by_variant), term)
        variants[key] = tuple(dict.fromkeys((*variants.get(key, ()), term, *own)))
        key_by_variant |= dict.fromkeys(variants[key], key)
    return variants


def make_language_marker(language: str) -> str:
    """The extra term that every passage in a language contains."""
    return f"{language}{_LANGUAGE_SEPARATOR}"


def remove_language_marker(term: str) -> str:
    """A term without the code of the language whose stem it is."""
    return term.rpartition(_LANGUAGE_SEPARATOR)[2]


def is_filler(word: str) -> bool:
    """Whether a folded word belongs to asking, such as "explain", rather than to the topic.

    Units do too: the "days" of "how many vacation days" say how the answer is measured, not what it is about.
    """
    return word in _FILLER_WORDS or word in UNIT_WORDS


def is_space_separated(word: str) -> bool:
    """Whether a word is in a script that writes spaces between words."""
    return _IS_UNSPACED.match(word) is None


def is_legacy_stop_stem(word: str) -> bool:
    """Whether the stem of a folded word is a stop word, such as "us" of "use".

    Indexes of earlier versions contain such words under that stem and therefore cannot find them.
    """
    return word.isascii() and word not in _ENGLISH_STOP_WORDS and stem_porter(word) in _ENGLISH_STOP_WORDS


def fold(text: str) -> str:
    """The text for comparison: without case, accents and optional signs, with one form of each letter."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKD", text.casefold()).translate(_FOLDING)
    return unicodedata.normalize("NFC", folded)


def detect_script(text: str) -> str:
    """The script of most letters of a text by its Unicode name: `LATIN`, `ARABIC`, `CJK` ..."""
    letters = Counter(
        unicodedata.name(letter, "OTHER").split(" ", 1)[0].split("-", 1)[0] for letter in text[:400] if letter.isalpha()
    )
    return letters.most_common(1)[0][0] if letters else "NONE"


def _normalize_accented(text: str) -> str:
    """The text in lower case with the accents that stemmers need, without optional signs."""
    return unicodedata.normalize("NFC", text).casefold().translate(_OPTIONAL_SIGNS)


def _stem_in_language(language: str, word: str) -> list[str]:
    """The terms of a lower-case word of a passage in a language.

    Stop words, codes with digits and words of other scripts keep their common term: "var" (where) must not become the
    stem of "varor" (goods).
    """
    folded = fold(word)
    if folded in _STOP_WORDS_BY_LANGUAGE[language] or not _IS_LATIN.fullmatch(word):
        return _stem_folded_word(folded)
    return [f"{language}{_LANGUAGE_SEPARATOR}{fold(stem_snowball(language, word[:MAX_TERM_CHARS]))}"]


def _stem_folded_word(word: str) -> list[str]:
    if word.isascii():
        return [_stem_english(word[:MAX_TERM_CHARS])]
    if _IS_UNSPACED.match(word):
        return [word[at : at + 2] for at in range(len(word) - 1)] or [word]
    word = word[:MAX_TERM_CHARS]
    return [stem_arabic(word) if _IS_ARABIC.match(word) else word]


@lru_cache(maxsize=100_000)
def _stem_english(word: str) -> str:
    """The English stem, extended if it would equal a stop word that the word is not.

    "one" does not become "on", nor "ore" "or"; "used" and "using" become "use", "owned" and "owning" become "owns".
    """
    stem = stem_porter(word)
    if stem not in _ENGLISH_STOP_WORDS or word in _ENGLISH_STOP_WORDS:
        return stem
    if len(stem) < 3:
        return f"{stem}e" if word == f"{stem}ing" or word.startswith(f"{stem}e") else word
    return f"{stem}s" if word in (f"{stem}ed", f"{stem}ing") else word


_FILLER_WORDS = frozenset(fold(_FILLER_TEXT).split())
UNIT_WORDS = frozenset(fold(word) for word in UNITS if word.isalpha())
_ENGLISH_STOP_WORDS = frozenset(ENGLISH.split())
_COMMON_STOP_WORDS = frozenset(fold(COMMON_STOP_WORDS).split())
_STOP_WORDS_BY_LANGUAGE = {name: frozenset(fold(words).split()) for name, words in BY_LANGUAGE.items()}
