"""Stems of European languages by Snowball (snowballstemmer, BSD), for passages that are told to be in one of them.

English and Arabic have stems of their own (`stemmer.py`). Why this library, and what another release of it asks for:
docs/adr/0008-stemming.md.
"""

from functools import lru_cache
from importlib import import_module
from threading import Lock
from typing import Protocol


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - the library's name


_NAMES = {
    "da": "danish", "de": "german", "es": "spanish", "fi": "finnish", "fr": "french", "it": "italian", "nl": "dutch",
    "no": "norwegian", "pt": "portuguese", "sv": "swedish",
}  # fmt: skip
STEMMED = tuple(_NAMES)
"""The codes of the languages: those whose small words are known (`stop_words.py`), but English."""
_MADE: dict[str, _Stemmer] = {}
_ONE_AT_A_TIME = Lock()
"""A stemmer keeps the word it is at in itself, and passages are cut into terms on threads."""

_SWEDISH_TAILS = (
    ("an", ""), ("et", ""), ("ot", "o"), ("on", "o"), ("yn", "y"), ("rn", "r"), ("ln", "l"), ("mm", "m"),
)  # fmt: skip
"""Endings of the definite form that Snowball leaves on ("fakturan", "l\u00f6senordet", "kvittot", "datorn")."""
_LEAST = 3
"""Letters that are left of a word without such an ending."""


@lru_cache(maxsize=100_000)
def snowball(language: str, word: str) -> str:
    """The stem of a word in small letters; `language` is one of `STEMMED`."""
    with _ONE_AT_A_TIME:
        if language not in _MADE:
            _MADE[language] = _made(_NAMES[language])
        return _swedish(word, _MADE[language]) if language == "sv" else _MADE[language].stemWord(word)


def _made(name: str) -> _Stemmer:
    """A stemmer, imported when a first word wants it: a house without other languages need not spend the 13 ms. By its
    module: the package itself would take PyStemmer where that stands, of whatever release."""
    stemmer: _Stemmer = getattr(import_module(f"snowballstemmer.{name}_stemmer"), f"{name.capitalize()}Stemmer")()
    return stemmer


def _swedish(word: str, stemmer: _Stemmer) -> str:
    """The stem of the stem, both times without the endings that Snowball leaves on: alone it puts "kostnaden" to
    "kostnad" and "kostnad" to "kostn". Of 316 pairs of forms of 60 nouns it joins 208, this 293."""
    for _ in range(2):
        word = stemmer.stemWord(word)
        ending = next((one for one in _SWEDISH_TAILS if word.endswith(one[0])), None)
        if ending is not None and len(word) - len(ending[0]) + len(ending[1]) >= _LEAST:
            word = word.removesuffix(ending[0]) + ending[1]
    return word
