"""What is done to the stream of a reply before it is an answer: what the model thinks is taken apart (endpoints that do
not know a model's template send both as one text), and a text that only repeats itself is ended."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

from agent.llm.port import ModelChunk
from agent.text.repetition import find_loop

LOOP_CHARS = 500
"""Characters of an answer between two looks for a loop."""
_TAGS = {"<think>": "</think>", "<thinking>": "</thinking>"}
"""How models begin and end their thoughts. An answer that has such a tag further on speaks of it."""


class Piece(NamedTuple):
    """Some of a reply: what was thought, and what is answered."""

    thought: str = ""
    text: str = ""


class ThoughtSplitter:
    """Splits a reply as it comes. It holds back what may be the half of a tag, and the space around the thought."""

    def __init__(self) -> None:
        self._held = ""
        self._end: str | None = None
        """The tag that ends the thought, while it goes on."""
        self.has_begun = False
        """Whether the answer has begun: what follows is text."""

    def feed(self, text: str) -> Piece:
        """The next piece of the reply."""
        if self.has_begun:
            return Piece(text=text)
        self._held += text
        thought = ""
        if self._end is None:
            beginning = self._held.lstrip()
            opened = next((tag for tag in _TAGS if beginning.startswith(tag)), None)
            if opened is None:
                return Piece() if any(tag.startswith(beginning) for tag in _TAGS) else self.end()
            self._end, self._held = _TAGS[opened], beginning.removeprefix(opened)
        if self._end:
            thought, ended, rest = self._held.partition(self._end)
            if not ended:
                return self._hold_half_tag()
            self._end, self._held = "", rest
        self._held = self._held.lstrip()
        return Piece(thought) if not self._held else Piece(thought, self.end().text)

    def end(self) -> Piece:
        """What is left when the reply ends, or when its answer begins."""
        rest, self._held = self._held, ""
        if self._end:
            return Piece(thought=rest)
        self.has_begun = True
        return Piece(text=rest)

    def _hold_half_tag(self) -> Piece:
        end = self._end or ""
        half = next((size for size in range(len(end) - 1, 0, -1) if self._held.endswith(end[:size])), 0)
        at = len(self._held) - half
        thought, self._held = self._held[:at], self._held[at:]
        return Piece(thought)


async def split_thoughts(stream: AsyncGenerator[ModelChunk, None]) -> AsyncGenerator[ModelChunk, None]:
    """Yields the chunks of a reply with its thought as reasoning."""
    splitter = ThoughtSplitter()
    async with aclosing(stream):
        async for chunk in stream:
            if splitter.has_begun or not chunk.text:
                yield chunk
                continue
            thought, text = splitter.feed(chunk.text)
            yield chunk._replace(text=text, reasoning=chunk.reasoning + thought)
    if any(rest := splitter.end()):
        yield ModelChunk(text=rest.text, reasoning=rest.thought)


async def end_loops(stream: AsyncGenerator[ModelChunk, None]) -> AsyncGenerator[ModelChunk, None]:
    """Yields the chunks of a reply; closes it as one that is too long once its text is a loop. Without an end of its
    own, a small model on a laptop goes on for as long as the run may take."""
    text, next_look = "", LOOP_CHARS
    async with aclosing(stream):
        async for chunk in stream:
            yield chunk
            text += chunk.text
            if len(text) >= next_look:
                next_look = len(text) + LOOP_CHARS
                if find_loop(text) >= 0:
                    yield ModelChunk(finish_reason="length")
                    return
