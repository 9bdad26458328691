"""The beginning and the end of a long text, where a request stands beside what was pasted into it."""

ASKING_CHARS = 5_000
"""Characters of each end of a request that are read for what it asks for. Reading a megabyte would hold the event loop
for seconds."""


def keep_ends(text: str, begin: int = ASKING_CHARS, end: int = ASKING_CHARS, between: str = "\n") -> str:
    """A text without its middle, if it has more characters than both ends."""
    return text if len(text) <= begin + end else f"{text[:begin]}{between}{text[-end:]}"
