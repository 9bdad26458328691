"""Stemmers for English (Porter, Program 14/3, 1980) and Arabic (Light10, Larkey et al., 2002)."""

import re
from functools import lru_cache

_CC = "[^aeiou][^aeiouy]*"
_V = "[aeiouy][aeiou]*"
_ONE_OR_MORE = re.compile(f"^(?:{_CC})?{_V}{_CC}")
_EXACTLY_ONE = re.compile(f"^(?:{_CC})?{_V}{_CC}(?:{_V})?$")
_TWO_OR_MORE = re.compile(f"^(?:{_CC})?{_V}{_CC}{_V}{_CC}")
_VOWEL = re.compile(f"^(?:{_CC})?[aeiouy]")
_SHORT = re.compile(f"^{_CC}[aeiouy][^aeiouwxy]$")
_DOUBLE = re.compile(r"([^aeiouylsz])\1$")

_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = dict.fromkeys(
    (
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ou", "ism", "ate", "iti",
        "ous", "ive", "ize",
    ),
    "",
)  # fmt: skip

_ARABIC_PREFIXES = ("وال", "بال", "كال", "فال", "ال", "لل")
_ARABIC_SUFFIXES = ("ها", "ان", "ات", "ون", "ين", "يه", "ه", "ي")  # noqa: RUF001 - Arabic


@lru_cache(maxsize=100_000)
def stem_porter(word: str) -> str:
    """The Porter stem of a lower-case ASCII word; words of one or two letters stay unchanged."""
    if len(word) < 3:
        return word
    stem = word.replace("y", "Y", 1) if word[0] == "y" else word  # a first y is a consonant
    stem = _strip_plural(stem)
    stem = _strip_past(stem)
    if stem[-1] == "y" and _VOWEL.match(stem[:-1]):
        stem = f"{stem[:-1]}i"
    stem = _replace_suffix(stem, _STEP_2, _ONE_OR_MORE)
    stem = _replace_suffix(stem, _STEP_3, _ONE_OR_MORE)
    return _strip_final_letter(_strip_noun_suffix(stem)).lower()


@lru_cache(maxsize=50_000)
def stem_arabic(word: str) -> str:
    """The light stem of a normalized Arabic word: without article, conjunction and common endings."""
    stem = word[1:] if word.startswith("و") and len(word) > 3 else word
    for prefix in _ARABIC_PREFIXES:
        if stem.startswith(prefix) and len(stem) >= len(prefix) + 2:
            stem = stem[len(prefix) :]
            break
    for suffix in _ARABIC_SUFFIXES:
        if stem.endswith(suffix) and len(stem) >= len(suffix) + 2:
            stem = stem[: -len(suffix)]
    return stem


def _strip_plural(word: str) -> str:
    if word.endswith(("sses", "ies")) and len(word) > (4 if word.endswith("sses") else 3):
        return word[:-2]
    return word[:-1] if word[-1] == "s" and word[-2] != "s" and len(word) > 2 else word


def _strip_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _ONE_OR_MORE.match(word[:-3]) else word
    stem = word[:-2] if word.endswith("ed") else word[:-3] if word.endswith("ing") else ""
    if not stem or not _VOWEL.match(stem):
        return word
    if stem.endswith(("at", "bl", "iz")):
        return f"{stem}e"
    if _DOUBLE.search(stem):
        return stem[:-1]
    return f"{stem}e" if _SHORT.match(stem) else stem


def _replace_suffix(word: str, endings: dict[str, str], measure: re.Pattern[str]) -> str:
    """The word with its longest known ending replaced, if the measure of the rest allows it."""
    for size in range(min(7, len(word) - 1), 1, -1):
        ending = word[-size:]
        if ending in endings:
            stem = word[:-size]
            return f"{stem}{endings[ending]}" if measure.match(stem) else word
    return word


def _strip_noun_suffix(word: str) -> str:
    shorter = _replace_suffix(word, _STEP_4, _TWO_OR_MORE)
    if shorter == word and word.endswith(("sion", "tion")) and _TWO_OR_MORE.match(word[:-3]):
        return word[:-3]
    return shorter


def _strip_final_letter(word: str) -> str:
    if word[-1] == "e":
        stem = word[:-1]
        if _TWO_OR_MORE.match(stem) or (_EXACTLY_ONE.match(stem) and not _SHORT.match(stem)):
            word = stem
    return word[:-1] if word.endswith("ll") and _TWO_OR_MORE.match(word) else word
