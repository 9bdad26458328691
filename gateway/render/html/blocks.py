"""Finds the ends of the blocks of a text."""

import re
from typing import Final

from gateway.render.html.parser import get_block_parser

_DETAILS: Final = re.compile(r"<(/?)details\b", re.IGNORECASE)
_LINES: Final = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+\Z")
"""Lines as the parser counts them. `str.splitlines` also ends one at a form feed or U+2028."""


def split_finished(text: str) -> tuple[list[str], str]:
    """The blocks at the beginning of a growing text that later text does not change, and the rest.

    A block is finished once another one follows it. `<details>` is open until it is closed, whatever it holds.
    """
    if "\n" not in text:
        return [], text
    starts = [token.map[0] for token in get_block_parser().parse(text) if token.level == 0 and token.map]
    starts = sorted(set(starts))
    if len(starts) < 2:
        return [], text
    lines = _LINES.findall(text)
    pieces = ["".join(lines[start:end]) for start, end in zip([0, *starts[1:]], [*starts[1:], None], strict=True)]
    finished: list[str] = []
    waiting = ""
    for piece in pieces[:-1]:
        waiting += piece
        marks = _DETAILS.findall(waiting)
        if marks.count("") <= marks.count("/"):
            finished.append(waiting)
            waiting = ""
    return finished, waiting + pieces[-1]
