"""`BlockStream`: the HTML of an answer that is still being written, block by block.

A text grows at its end. Each block before the last one is finished: it is rendered once. Only the last, open block is
rendered again when it has grown. What depends on later text (link references, footnotes) is right once the whole answer
is rendered at its end.

Work and bytes grow with the length of the answer, never with its square: a long open block is sent as text, each time
only what is new of it, and is parsed again only once it has grown by a share of its length.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gateway.render.html.blocks import split_finished
from gateway.render.html.limits import PLAIN_PIECE_CHARS, RenderBudget, cut_plain_piece
from gateway.render.html.rendering import render_markdown

MAX_OPEN_CHARS: Final = 6_000
"""Longest open block that is rendered while it grows. A longer one is shown as text until it is finished: rendering it
again with each piece takes time that grows with the square of its length."""
_REPARSE_SHARE: Final = 0.25
"""By which share of its length a long open block has to grow before it is parsed again."""


@dataclass(frozen=True, slots=True)
class RenderedBlock:
    """A block at its place in the answer. One that is not `finished` replaces the one before it at its place.

    `html` is None for a block that is shown as `text`; with `appends`, the text follows the one shown before.
    """

    index: int
    html: str | None
    finished: bool
    text: str = ""
    appends: bool = False


class BlockStream:
    """The blocks of one growing text. `feed` adds to it; `render` says what has changed."""

    def __init__(self, prefix: str = "text") -> None:
        self._prefix = prefix
        self._pieces: list[str] = []
        self._open = ""
        self._index = 0
        self._budget = RenderBudget()
        self._is_rest_plain = False
        self._parsed_chars = 0
        """The length of the open block when it was parsed last."""
        self._shown_chars = 0
        """How much of the open block is shown."""
        self._is_shown_as_text = False

    def feed(self, piece: str) -> None:
        """Adds text to the end."""
        self._pieces.append(piece)

    def render(self) -> Iterator[RenderedBlock]:
        """Yields the blocks that were finished since the last call, then the open one if it has changed."""
        self._open += "".join(self._pieces)
        self._pieces.clear()
        if not self._is_rest_plain and self._should_parse():
            yield from self._finish_blocks()
        if self._is_rest_plain:
            yield from self._finish_plain_pieces()
        if len(self._open) > self._shown_chars and self._open.strip():
            yield self._render_open()
        self._shown_chars = len(self._open)

    def _should_parse(self) -> bool:
        least = self._parsed_chars * _REPARSE_SHARE if len(self._open) > MAX_OPEN_CHARS else 0
        return len(self._open) - self._parsed_chars > least

    def _finish_blocks(self) -> Iterator[RenderedBlock]:
        fits = self._budget.measure(self._open)
        finished, rest = split_finished(self._open[:fits])
        for text in finished:
            yield self._finish(render_markdown(text, f"{self._prefix}-{self._index}"), text)
        self._is_rest_plain = fits < len(self._open)
        self._open = rest + self._open[fits:]
        self._parsed_chars = len(self._open)

    def _finish_plain_pieces(self) -> Iterator[RenderedBlock]:
        at = 0
        while len(self._open) - at > PLAIN_PIECE_CHARS:
            piece = cut_plain_piece(self._open[at : at + PLAIN_PIECE_CHARS + 1])
            yield self._finish(None, piece)
            at += len(piece)
        self._open = self._open[at:]

    def _finish(self, html: str | None, text: str) -> RenderedBlock:
        block = RenderedBlock(self._index, html, finished=True, text="" if html is not None else text)
        self._index += 1
        self._budget.spend(text)
        self._shown_chars, self._is_shown_as_text = 0, False
        return block

    def _render_open(self) -> RenderedBlock:
        if len(self._open) > MAX_OPEN_CHARS or self._is_rest_plain:
            appends, self._is_shown_as_text = self._is_shown_as_text, True
            text = self._open[self._shown_chars :] if appends else self._open
            return RenderedBlock(self._index, None, finished=False, text=text, appends=appends)
        html = render_markdown(self._open, f"{self._prefix}-{self._index}")
        return RenderedBlock(self._index, html, finished=False)
