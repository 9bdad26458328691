"""Text to search terms, the same for every driver, for chunks and queries: folded, cut into words, stemmed.

English words are stemmed by Porter's algorithm, Arabic ones lightly; scripts that write no spaces become pairs of
characters. Every other script is kept as whole words. Nothing of a query is syntax.
"""

import re
import unicodedata
from collections import Counter

from agent.knowledge.stemmer import arabic, porter

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
_IS_ARABIC = re.compile("[\u0620-\u06ff]")

_ENGLISH = """
a about after all also am an and any are as at be because been before being between both but by can cannot could did
do does doing done during each few for from further had has have having he her here hers him his how however i if in
into is it its itself just may me might more most must my no nor not of off on once only or other our ours out over own
please same shall she should so some such than that the their theirs them then there these they this those through to
too under until up upon us very was we were what when where whether which while who whom whose why will with within
without would yet you your yours s t d ll re ve don doesn didn isn aren wasn won
"""
_FILLERS = """
according anybody anyone anything available describe detail details discuss document documents exist exists existing
explain file files find get give given happen happened happens info information know known list look many mean means
much need often page pages people please question regarding related say says show someone something tell thing things
understand use used using want work works
"""
"""Words of questions rather than of what they ask for: searched like others, but a passage need not hold them."""
_SWEDISH = (
    "att av de den det du en ett för har hur inte jag med men min mitt mina när och om på som till var vad vem är"
)
_ARABIC = """
في من على إلى الى عن مع هذا هذه ذلك تلك التي الذي الذين ما ماذا متى أين كيف هل هو هي هم كان كانت يكون أن ان إن أو او ثم
لا لم لن قد كل بعد قبل بين حتى كما لكن عند لماذا و يا أي اي كم
"""


def terms(text: str) -> list[str]:
    """The terms of a text in their order, stop words too: what an index holds."""
    if text.isascii():
        return [porter(word[:MAX_TERM_CHARS]) for word in _ASCII_WORD.findall(text.lower())]
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
    counts: Counter[str] = Counter()
    spoken: dict[str, str] = {}
    for word in [word for word in words if word not in _STOP] or words:
        for term in _stems(word):
            counts[term] += 1
            spoken.setdefault(term, term if _IS_UNSPACED.match(word) else word)
    chosen = {term for term, _ in counts.most_common(MAX_QUERY_TERMS)}
    return {term: word for term, word in spoken.items() if term in chosen}


def is_filler(word: str) -> bool:
    """Whether a folded word belongs to the asking, such as "explain", rather than to what is asked for."""
    return word in _ASKING


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


def _stems(word: str) -> list[str]:
    if word.isascii():
        return [porter(word[:MAX_TERM_CHARS])]
    if _IS_UNSPACED.match(word):
        return [word[at : at + 2] for at in range(len(word) - 1)] or [word]
    word = word[:MAX_TERM_CHARS]
    return [arabic(word) if _IS_ARABIC.match(word) else word]


_ASKING = frozenset(_FILLERS.split())
_STOP = frozenset(fold(f"{_ENGLISH} {_SWEDISH} {_ARABIC}").split())
