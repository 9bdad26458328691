"""Units in the labels of values: `duration_s: 9300`, `"sizeBytes": 512`, `Weight (kg): 72`."""

import re
from typing import Final

from agent.text.units import UNITS_OF_LABELS, Unit

_LABEL: Final = re.compile(r"(?<![^\W_])(?P<word>[^\W\d_]+(?:[²³]|\d(?!\d))?)\)?[\"']?\s?[:=]?\s?[\"']?$")
_CAMEL: Final = re.compile(r"(?<=[a-z])[A-Z]+[a-z]*$")
_MAX_LABEL: Final = 30


def find_unit_of_label(text: str, start: int) -> Unit | None:
    """The unit that ends the label of a value: `duration_s: 9300`, `"sizeBytes": 512`, `Weight (kg): 72`."""
    label = _LABEL.search(text, max(0, start - _MAX_LABEL), start)
    if label is None:
        return None
    last = _CAMEL.search(label["word"])
    unit = UNITS_OF_LABELS.get(label["word"].lower())
    return unit if unit is not None or last is None else UNITS_OF_LABELS.get(last[0].lower())
