"""`BlockStream`: the HTML of an answer that is still being written, block by block.

A text grows at its end. Each block before the last one is finished: it is rendered once. Only the last, open block is
rendered again when it has grown. What depends on later text (link references, footnotes) is right once the whole answer
is rendered at its end.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gateway.render.html.parser import get_block_parser
from gateway.render.html.rendering import render_markdown

MAX_OPEN_CHARS: Final = 6_000
"""Longest open block that is rendered while it grows. A longer one is shown as text until it is finished: rendering it
again with each piece takes time that grows with the square of its length."""
_DETAILS: Final = re.compile(r"<(/?)details\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RenderedBlock:
    """A block at its place in the answer. One that is not `finished` replaces the one before it at its place.

    `html` is None for an open block that is shown as `text`.
    """

    index: int
    html: str | None
    finished: bool
    text: str = ""


class BlockStream:
    """The blocks of one growing text. `feed` adds to it; `render` says what has changed."""

    def __init__(self, prefix: str = "text") -> None:
        self._prefix = prefix
        self._open = ""
        self._index = 0
        self._shown = ""

    def feed(self, piece: str) -> None:
        """Adds text to the end."""
        self._open += piece

    def render(self) -> Iterator[RenderedBlock]:
        """Yields the blocks that were finished since the last call, then the open one if it has changed."""
        finished, self._open = split_finished(self._open)
        for text in finished:
            yield RenderedBlock(self._index, render_markdown(text, f"{self._prefix}-{self._index}"), finished=True)
            self._index += 1
        if self._open != self._shown and self._open.strip():
            yield self._render_open()
        self._shown = self._open

    def _render_open(self) -> RenderedBlock:
        if len(self._open) > MAX_OPEN_CHARS:
            return RenderedBlock(self._index, None, finished=False, text=self._open)
        html = render_markdown(self._open, f"{self._prefix}-{self._index}")
        return RenderedBlock(self._index, html, finished=False)


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
    lines = text.splitlines(keepends=True)
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
