"""Raised figures: "10" with a raised "3" is 10³, not 103, and "m" with a raised "2" is m²; the mark of a note makes
neither a figure nor a word longer."""

RAISED_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
RAISED = f"{RAISED_DIGITS}⁺⁻"
_RAISED = str.maketrans("0123456789+-−()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿ")  # noqa: RUF001 - the minus sign is meant
_LOWERED = str.maketrans(RAISED, "0123456789+-")
RAISED_SIGNS = frozenset("0123456789+-−()")  # noqa: RUF001 - as above


def raise_figures(before: str, text: str) -> str:
    """A raised text as superscript characters if it follows a character and is a figure itself, else as it is.

    Behind a space it may be the upper part of a fraction.
    """
    inner = text.strip()
    if before[-1:].strip() and inner and RAISED_SIGNS.issuperset(inner) and any(map(str.isdigit, inner)):
        return text.translate(_RAISED)
    return text


def lower_figures(text: str) -> str:
    """A text with plain figures in place of raised ones."""
    return text.translate(_LOWERED)
