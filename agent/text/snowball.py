"""Snowball stemmers (snowballstemmer, BSD) for the European languages that a passage can be detected to be in.

English and Arabic have their own stemmers (`stemmer.py`). Why this library, and what an upgrade of it requires:
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
SNOWBALL_LANGUAGES = tuple(_NAMES)
"""The language codes: those with stop words (`stop_words.py`), except English."""
_STEMMERS: dict[str, _Stemmer] = {}
_STEMMER_LOCK = Lock()
"""A stemmer object keeps the current word as state, and passages are stemmed in threads."""

_SWEDISH_DEFINITE_ENDINGS = (
    ("an", ""), ("et", ""), ("ot", "o"), ("on", "o"), ("yn", "y"), ("rn", "r"), ("ln", "l"), ("mm", "m"),
)  # fmt: skip
"""Endings of the definite form that Snowball does not remove ("fakturan", "l\u00f6senordet", "kvittot", "datorn")."""
_MIN_STEM_CHARS = 3
"""The minimum length of a word without such an ending."""


@lru_cache(maxsize=100_000)
def stem_snowball(language: str, word: str) -> str:
    """The stem of a lower-case word; `language` is one of `SNOWBALL_LANGUAGES`."""
    with _STEMMER_LOCK:
        if language not in _STEMMERS:
            _STEMMERS[language] = _create_stemmer(_NAMES[language])
        return _stem_swedish(word, _STEMMERS[language]) if language == "sv" else _STEMMERS[language].stemWord(word)


def _create_stemmer(name: str) -> _Stemmer:
    """A stemmer, imported when its first word arrives, which saves 13 ms at start.

    The module is imported directly: the package itself would use PyStemmer of any version if that is installed.
    """
    stemmer: _Stemmer = getattr(import_module(f"snowballstemmer.{name}_stemmer"), f"{name.capitalize()}Stemmer")()
    return stemmer


def _stem_swedish(word: str, stemmer: _Stemmer) -> str:
    """The stem of the stem, each time without the endings that Snowball leaves on.

    Snowball alone maps "kostnaden" to "kostnad" and "kostnad" to "kostn". Of 316 pairs of forms of 60 nouns it joins
    208, this function 293.
    """
    for _ in range(2):
        word = stemmer.stemWord(word)
        ending = next((one for one in _SWEDISH_DEFINITE_ENDINGS if word.endswith(one[0])), None)
        if ending is not None and len(word) - len(ending[0]) + len(ending[1]) >= _MIN_STEM_CHARS:
            word = word.removesuffix(ending[0]) + ending[1]
    return word
