"""Units in the labels of values: `duration_s: 9300`, `"sizeBytes": 512`, `Weight (kg): 72`, and in those of inputs."""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from agent.text.terms import has_content_words
from agent.text.units import UNITS_OF_LABELS, Unit, is_currency

_LABEL: Final = re.compile(r"(?<![^\W_])(?P<word>[^\W\d_]+(?:[²³]|\d(?!\d))?)\)?[\"']?\s?[:=]?\s?[\"']?$")
_CAMEL: Final = re.compile(r"(?<=[a-z])[A-Z]+[a-z]*$")
_MAX_LABEL: Final = 30
_SAID: Final = re.compile(
    r"(?<![^\W\d_])(?P<before>[^\W\d_]++) (?:in (?P<word>[^\W\d_]+)|\((?:in )?(?P<bracket>[^\W\d_]+|%)\))"
    r"(?=\s*(?:\(|\Z))"
)
"""The unit behind a noun that ends the first clause of a description: `Length in minutes`, `Brightness (%)`."""
_CLAUSE_END: Final = re.compile(r"[.,:;!?\n]")
_WORD: Final = re.compile(r"[^\W\d_]{2,}|%")
_HUNDREDTH: Final = Decimal("0.01")
_CACHED_INPUTS: Final = 256


class InputUnits(NamedTuple):
    """The units in which an input takes its number, and whether it takes hundredths of money."""

    units: tuple[Unit, ...] = ()
    in_cents: bool = False


@lru_cache(maxsize=_CACHED_INPUTS)
def read_input_units(label: str) -> InputUnits:
    """The unit of an input by its name or, behind a line break, its description. Only the name makes it take cents:
    a description names them in many other ways ("in dollars, not in cents")."""
    name, _, description = label.partition("\n")
    unit = find_unit_of_label(name, len(name))
    if unit is not None and is_currency(unit):
        return InputUnits((unit,), in_cents=unit.factor == _HUNDREDTH)
    if unit is None:
        unit = _find_described_unit(description)
    return InputUnits((unit,) if unit is not None else ())


def _find_described_unit(description: str) -> Unit | None:
    """The only unit that a description names, if it is that of its first clause; None for money."""
    ending = _SAID.search(_CLAUSE_END.split(description, maxsplit=1)[0])
    if ending is None or not has_content_words(ending["before"]):  # "not in seconds"
        return None
    unit = UNITS_OF_LABELS.get((ending["word"] or ending["bracket"]).lower())
    rest = description[: ending.start()] + description[ending.end("before") :]  # a "timer" is a Norwegian hour too
    named = {UNITS_OF_LABELS.get(word.lower()) for word in _WORD.findall(rest)} - {None}
    return unit if unit is not None and named == {unit} and not is_currency(unit) else None


def find_unit_of_label(text: str, start: int) -> Unit | None:
    """The unit that ends the label of a value: `duration_s: 9300`, `"sizeBytes": 512`, `Weight (kg): 72`."""
    label = _LABEL.search(text, max(0, start - _MAX_LABEL), start)
    if label is None:
        return None
    last = _CAMEL.search(label["word"])
    unit = UNITS_OF_LABELS.get(label["word"].lower())
    return unit if unit is not None or last is None else UNITS_OF_LABELS.get(last[0].lower())
