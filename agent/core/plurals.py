"""Counts in sentences: `1 passage`, `3 passages`."""


def many(number: int, noun: str) -> str:
    """The number with the noun, which takes an s unless it is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
