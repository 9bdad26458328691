"""Formats counts: `1 passage`, `3 passages`."""


def format_count(number: int, noun: str) -> str:
    """The number with the noun, which gets an "s" unless the number is 1."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
