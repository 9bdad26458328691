"""Units in the labels of values: `duration_s: 9300`, `"sizeBytes": 512`, `Weight (kg): 72`, and in those of inputs."""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from agent.text.scales import CENT, find_scales
from agent.text.units import UNITS_OF_LABELS, Unit

_LABEL: Final = re.compile(r"(?<![^\W_])(?P<word>[^\W\d_]+(?:[²³]|\d(?!\d))?)\)?[\"']?\s?[:=]?\s?[\"']?$")
_CAMEL: Final = re.compile(r"(?<=[a-z])[A-Z]+[a-z]*$")
_MAX_LABEL: Final = 30
_SAID: Final = re.compile(r"(?:\bin|\()\s?(?P<word>[^\W\d_]+|%)")
"""The unit in an input's description: `Length in minutes`, `Brightness (%)`."""
_CACHED_INPUTS: Final = 256


class InputUnits(NamedTuple):
    """The units in which an input takes its number, and whether it takes hundredths of money."""

    units: tuple[Unit, ...] = ()
    in_cents: bool = False


@lru_cache(maxsize=_CACHED_INPUTS)
def read_input_units(label: str) -> InputUnits:
    """The units of an input by its name or, behind a line break, its description."""
    name, _, description = label.partition("\n")
    own = find_unit_of_label(name, len(name))
    words = [match["word"].lower() for match in _SAID.finditer(description)] if own is None else []
    described = (UNITS_OF_LABELS[word] for word in words if word in UNITS_OF_LABELS)
    return InputUnits((own,) if own is not None else tuple(described), CENT in find_scales(label))


def find_unit_of_label(text: str, start: int) -> Unit | None:
    """The unit that ends the label of a value: `duration_s: 9300`, `"sizeBytes": 512`, `Weight (kg): 72`."""
    label = _LABEL.search(text, max(0, start - _MAX_LABEL), start)
    if label is None:
        return None
    last = _CAMEL.search(label["word"])
    unit = UNITS_OF_LABELS.get(label["word"].lower())
    return unit if unit is not None or last is None else UNITS_OF_LABELS.get(last[0].lower())
