"""Text to search terms, the same for every driver, for chunks and queries: folded, cut into words, stemmed.

English words are stemmed by Porter's algorithm, Arabic ones lightly; scripts that write no spaces become pairs of
characters. A passage that is told to be Swedish, German or in another of `STEMMED` has its language's stems, which
begin with the language's code: they meet no English ones. A query is searched by both. Every other script is kept as
whole words. Nothing of a query is syntax.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from agent.knowledge.snowball import snowball
from agent.knowledge.stemmer import arabic, porter
from agent.knowledge.stop_words import BY_LANGUAGE, ENGLISH, EVERYWHERE, tongues

MAX_QUERY_TERMS = 24
"""Terms of a query that are searched; more cost time and find nothing better."""
MAX_TERM_CHARS = 64
"""Longer runs of letters are data, not words: their beginning stands for them."""

_DROPPED = dict.fromkeys(
    (
        *range(0x0300, 0x0370), *range(0x0591, 0x05BE), 0x05BF, *range(0x05C1, 0x05C8), *range(0x0610, 0x061B),
        0x0640, *range(0x064B, 0x0660), 0x0670, *range(0x06D6, 0x06EE), 0x00AD, 0x200C, 0x200D,
    )
)  # fmt: skip
"""Accents, the points of Hebrew and Arabic, the Arabic stretch, invisible joiners: written or not as one likes."""
_FOLDED = {
    **_DROPPED, ord("ى"): "ي", ord("ی"): "ي", ord("ک"): "ك", ord("ة"): "ه",  # noqa: RUF001 - Arabic
    **{0x0660 + digit: str(digit) for digit in range(10)}, **{0x06F0 + digit: str(digit) for digit in range(10)},
}  # fmt: skip
_MARKS = "".join(chr(code) for code in range(0x0900, 0x1D00) if unicodedata.category(chr(code)) in {"Mn", "Mc"})
"""Vowel signs of Indian and South-East Asian scripts, which Python does not count as letters."""
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese: written without spaces between words."""
_ASCII_WORD = re.compile("[a-z0-9]+")
_WORD = re.compile(f"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\\W_{_MARKS}][{_MARKS}]*)+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_IS_LATIN = re.compile("[a-z\u00df-\u024f]+")
_OF = "\u00b7"
"""What stands between a language and its stem: no letter, so that no word is taken for one, and no ASCII, at which FTS5
would cut."""
_IS_ARABIC = re.compile("[\u0620-\u06ff]")

_FILLERS = """
according anybody anyone anything available describe detail details discuss document documents exist existing exists
explain file files find get give given happen happened happens info information know known list look many mean means
much need often page pages people please question regarding related rule rules say says show someone something
summarise summarize summary tell thing things understand use used using want work works
befinden befindet befinner behöver behövs beträgt braucht brauchen dauert findet gilt gäller heißt heter hoch händer hög
höchstens högst kosta kostar kostet krävs lange liegen ligger liegt länge oft ofta passiert sker stänger viel viele
varar öppnar öffnet schließt
"""
"""Words of questions rather than of what they ask for: searched like others, but a passage need not hold them."""


def terms(text: str, language: str = "") -> list[str]:
    """The terms of a text in their order, stop words too: what an index holds. `language` is one of `snowball.STEMMED`,
    or empty where the text is not told to be in any of them."""
    if language:
        return [term for word in _WORD.findall(_written(text)) for term in _terms_in(language, word)]
    if text.isascii():
        return [_english(word[:MAX_TERM_CHARS]) for word in _ASCII_WORD.findall(text.lower())]
    found: list[str] = []
    for word in _WORD.findall(fold(text)):
        found += _stems(word)
    return found


def query_terms(query: str) -> list[str]:
    """The distinct terms a query is searched by, in their order: without stop words unless there is nothing else,
    and at most `MAX_QUERY_TERMS` of them, those it repeats most."""
    return list(query_words(query))


def query_words(query: str) -> dict[str, str]:
    """The terms of `query_terms`, each with the word it came from."""
    words = [word[:MAX_TERM_CHARS] for word in _WORD.findall(fold(query))]
    told = tongues(query)
    small = _STOP if "en" in told else _STOP.union(*(_SMALL[name] for name in told))
    counts: Counter[str] = Counter()
    spoken: dict[str, str] = {}
    for word in [word for word in words if word not in small] or words:
        for term in _stems(word):
            counts[term] += 1
            spoken.setdefault(term, term if _IS_UNSPACED.match(word) else word)
    chosen = {term for term, _ in counts.most_common(MAX_QUERY_TERMS)}
    return {term: word for term, word in spoken.items() if term in chosen}


def query_forms(query: str, languages: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The terms of `query_terms`, each with those it has in passages in these languages, itself among them. Two that
    are one in a language are one here."""
    spoken = query_words(query)
    written = {fold(word): word for word in _WORD.findall(_written(query))} if languages else {}
    forms: dict[str, tuple[str, ...]] = {}
    taken: dict[str, str] = {}
    for term, word in spoken.items():
        own = [held for one in languages for held in _terms_in(one, written.get(word, word)) if is_spaced(word)]
        key = next((taken[one] for one in own if one in taken), term)
        forms[key] = tuple(dict.fromkeys((*forms.get(key, ()), term, *own)))
        taken |= dict.fromkeys(forms[key], key)
    return forms


def mark(language: str) -> str:
    """The term that every passage in a language holds beside those of its words."""
    return f"{language}{_OF}"


def is_filler(word: str) -> bool:
    """Whether a folded word belongs to the asking, such as "explain", rather than to what is asked for."""
    return word in _ASKING


def is_spaced(word: str) -> bool:
    """Whether a word is of a script that writes spaces between words."""
    return _IS_UNSPACED.match(word) is None


def was_small(word: str) -> bool:
    """Whether the stem of a folded word is a small one, such as "us" of "use": an index that was made
    before such words were told apart holds it by that stem, and so knows nothing of it."""
    return word.isascii() and word not in _SMALL_ENGLISH and porter(word) in _SMALL_ENGLISH


def fold(text: str) -> str:
    """The text as it is compared: no case, accents or optional signs, one form of each letter."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKD", text.casefold()).translate(_FOLDED)
    return unicodedata.normalize("NFC", folded)


def script(text: str) -> str:
    """The script most letters of a text are written in, as Unicode names it: `LATIN`, `ARABIC`, `CJK` ..."""
    letters = Counter(
        unicodedata.name(letter, "OTHER").split(" ", 1)[0].split("-", 1)[0] for letter in text[:400] if letter.isalpha()
    )
    return letters.most_common(1)[0][0] if letters else "NONE"


def _written(text: str) -> str:
    """The text in small letters with the accents that stemmers go by, without optional signs."""
    return unicodedata.normalize("NFC", text).casefold().translate(_DROPPED)


def _terms_in(language: str, word: str) -> list[str]:
    """The terms of a word, in small letters, of a passage in a language. Its small words, codes with digits and other
    scripts are what they are anywhere: "var" (where) is not the stem of "varor" (goods)."""
    folded = fold(word)
    if folded in _SMALL[language] or not _IS_LATIN.fullmatch(word):
        return _stems(folded)
    return [f"{language}{_OF}{fold(snowball(language, word[:MAX_TERM_CHARS]))}"]


def _stems(word: str) -> list[str]:
    if word.isascii():
        return [_english(word[:MAX_TERM_CHARS])]
    if _IS_UNSPACED.match(word):
        return [word[at : at + 2] for at in range(len(word) - 1)] or [word]
    word = word[:MAX_TERM_CHARS]
    return [arabic(word) if _IS_ARABIC.match(word) else word]


@lru_cache(maxsize=100_000)
def _english(word: str) -> str:
    """The stem; where that is a small word and the word itself is none, it keeps what tells them apart: "one" is not
    "on", nor "ore" "or". "used" and "using" are "use", "owned" and "owning" are "owns"."""
    stem = porter(word)
    if stem not in _SMALL_ENGLISH or word in _SMALL_ENGLISH:
        return stem
    if len(stem) < 3:
        return f"{stem}e" if word == f"{stem}ing" or word.startswith(f"{stem}e") else word
    return f"{stem}s" if word in (f"{stem}ed", f"{stem}ing") else word


_ASKING = frozenset(fold(_FILLERS).split())
_SMALL_ENGLISH = frozenset(ENGLISH.split())
_STOP = frozenset(fold(EVERYWHERE).split())
_SMALL = {name: frozenset(fold(words).split()) for name, words in BY_LANGUAGE.items()}
SMALL_ANYWHERE = _STOP.union(*_SMALL.values())
"""The small words of every language that is known, folded."""
