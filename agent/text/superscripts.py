"""Raised figures: "10" with a raised "3" is 10³, not 103; the mark of a note does not make a figure larger."""

RAISED_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
RAISED = f"{RAISED_DIGITS}⁺⁻"
_RAISED = str.maketrans("0123456789+-−()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿ")  # noqa: RUF001 - the minus sign is meant
_LOWERED = str.maketrans(RAISED, "0123456789+-")
RAISED_SIGNS = frozenset("0123456789+-−()")  # noqa: RUF001 - as above


def raise_figures(before: str, text: str) -> str:
    """A raised text as superscript characters if it follows a digit and is a figure itself, else as it is."""
    inner = text.strip()
    if before[-1:].isdigit() and inner and RAISED_SIGNS.issuperset(inner):
        return text.translate(_RAISED)
    return text


def lower_figures(text: str) -> str:
    """A text with plain figures in place of raised ones."""
    return text.translate(_LOWERED)
