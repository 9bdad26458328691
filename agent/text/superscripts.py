"""Raised figures: "10" with a raised "3" is 10³, not 103; the mark of a note does not make a figure larger."""

_RAISED = str.maketrans("0123456789+-−()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿ")  # noqa: RUF001 - the minus sign is meant
_FIGURES = frozenset("0123456789+-−()")  # noqa: RUF001 - as above


def raise_figures(before: str, text: str) -> str:
    """A raised text as superscript characters if it follows a digit and is a figure itself, else as it is."""
    inner = text.strip()
    if before[-1:].isdigit() and inner and _FIGURES.issuperset(inner):
        return text.translate(_RAISED)
    return text
