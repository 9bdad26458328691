"""Reads files of JSON lines."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read_json_lines(path: Path) -> Iterator[Any]:
    """Yields the value of each line that is not empty.

    `str.splitlines` would not do: it also splits at U+2028 and other separators, which JSON allows inside strings.
    """
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())
