"""The names of GGUF files that are split into parts, as `llama-gguf-split` writes them: `NAME-00001-of-00003.gguf`.

llama.cpp is given the first part, and finds the others beside it.
"""

import re

_PART = re.compile(r"-(?P<number>\d{5})-of-(?P<count>\d{5})(?=\.gguf$)", re.IGNORECASE)


def list_parts(name: str) -> list[str]:
    """The names or paths of all parts of a file, the first one first; the file alone if it is not split."""
    part = _PART.search(name)
    if part is None or not 0 < int(part["number"]) <= int(part["count"]):
        return [name]
    numbers = range(1, int(part["count"]) + 1)
    return [f"{name[: part.start()]}-{number:05}-of-{part['count']}{name[part.end() :]}" for number in numbers]


def remove_part_number(name: str) -> str:
    """The name of a file without the number of its part."""
    return _PART.sub("", name)
