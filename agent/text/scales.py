"""The scales that a text names apart from its numbers: "in thousands", a column `SEK m`, `Mio. €`, `MSEK`, cents."""

import re
from decimal import Decimal
from typing import Final

from agent.text.number_words import SCALES

_CURRENCY: Final = r"(?:SEK|EUR|USD|GBP|CHF|NOK|DKK|kr|[$€£])"
_SHORT: Final = {"k": 3, "t": 3, "m": 6, "mn": 6, "b": 9, "bn": 9, "md": 9, "mdr": 9}
_PATTERN: Final = re.compile(
    rf"\b(?P<word>{'|'.join(sorted(SCALES, key=len, reverse=True))})\b"
    rf"|(?<!\w){_CURRENCY}[ \u00a0]?(?P<behind>mn|bn|[kmb])\b"
    rf"|(?<!\w)(?P<before>mdr|mn|md|[ktm]){_CURRENCY}(?!\w)"
    r"|(?P<cents>(?<![^\W_])(?:cents?|cts?|centimes?|öre|pence|unit_amount)(?![^\W_]))",
    re.IGNORECASE,
)
CENT: Final = Decimal("0.01")


def find_scales(text: str) -> set[Decimal]:
    """The factors of the scales that a text names; a hundredth where it counts in cents."""
    scales: set[Decimal] = set()
    for match in _PATTERN.finditer(text):
        if match["word"]:
            scales.add(SCALES[match["word"].lower()])
        elif match["cents"]:
            scales.add(CENT)
        else:
            scales.add(Decimal(10 ** _SHORT[(match["behind"] or match["before"]).lower()]))
    return scales
