"""Ordinal numbers in words, from the cardinal ones: `twenty-third`, `siebzehnten`, `tjugoförsta`, `quinzième`.

From the fourth on: "second" and "andra" are mostly other words, and counts under ten need no evidence.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

_FIRST = 4
_ENGLISH = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_SWEDISH = (
    "första", "andra", "tredje", "fjärde", "femte", "sjätte", "sjunde", "åttonde", "nionde", "tionde", "elfte",
    "tolfte", "trettonde", "fjortonde", "femtonde", "sextonde", "sjuttonde", "artonde", "nittonde",
)  # fmt: skip
_GERMAN_STEMS = {"sieben": "siebt", "acht": "acht"}
_GERMAN_ENDINGS = ("e", "en", "er", "es", "em")
_FRENCH_STEMS = {"cinq": "cinqu", "neuf": "neuv"}


def build_ordinals(
    ones: Mapping[str, Sequence[str]], tens: Mapping[str, Sequence[str]], french: Mapping[str, int]
) -> dict[str, int]:
    """The ordinals up to 99. `ones` has the cardinals from 0 to 19 of each language, `tens` those from 20 to 90, and
    `french` the French ones from 20 on."""
    words = dict(_iter_english(ones["en"], tens["en"]))
    words |= dict(_iter_swedish(tens["sv"]))
    words |= dict(_iter_german(ones["de"], tens["de"]))
    cardinals = {word: number for number, word in enumerate(ones["fr"]) if number >= _FIRST} | dict(french)
    return words | {_make_french(word): number for word, number in cardinals.items()}


def _iter_english(ones: Sequence[str], tens: Iterable[str]) -> Iterator[tuple[str, int]]:
    irregular = dict(enumerate(_ENGLISH, start=1)) | {12: "twelfth"}
    for number in range(_FIRST, 20):
        yield irregular.get(number, f"{ones[number]}th"), number
    for ten, name in enumerate(tens, start=2):
        yield f"{name[:-1]}ieth", 10 * ten
        yield from ((f"{name}-{one}", 10 * ten + number) for number, one in enumerate(_ENGLISH, start=1))


def _iter_swedish(tens: Iterable[str]) -> Iterator[tuple[str, int]]:
    yield from ((word, number) for number, word in enumerate(_SWEDISH, start=1) if number >= _FIRST)
    for ten, name in enumerate(tens, start=2):
        yield f"{name}nde", 10 * ten
        yield from ((f"{name}{one}", 10 * ten + number) for number, one in enumerate(_SWEDISH[:9], start=1))


def _iter_german(ones: Sequence[str], tens: Iterable[str]) -> Iterator[tuple[str, int]]:
    stems = [(_GERMAN_STEMS.get(ones[number], f"{ones[number]}t"), number) for number in range(_FIRST, 20)]
    for ten, name in enumerate(tens, start=2):
        stems.append((f"{name}st", 10 * ten))
        stems += [(f"{_get_german_one(ones, number)}und{name}st", 10 * ten + number) for number in range(1, 10)]
    yield from ((stem + ending, number) for stem, number in stems for ending in _GERMAN_ENDINGS)


def _get_german_one(ones: Sequence[str], number: int) -> str:
    return "ein" if number == 1 else ones[number]


def _make_french(cardinal: str) -> str:
    head, joint, last = cardinal.rpartition("-")
    return f"{head}{joint}{_FRENCH_STEMS.get(last, last.removesuffix('e'))}ième"
