"""Takes off what a model puts around its answer, also from a stream.

Its thought: endpoints that do not know a model's template send it in the text. A code fence around a whole Markdown
answer, which makes clients show the source of headings and tables; fences within the answer stay.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Literal, NamedTuple

from agent.llm.port import ModelChunk

_FENCE = "```"
_MARKDOWN = ("markdown", "md")
_State = Literal["start", "inside", "nested", "outside"]
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


class MarkdownFence:
    """Passes an answer on without its fence. Holds back only what may belong to the fence."""

    def __init__(self) -> None:
        self._state: _State = "start"
        self._held = ""
        self._is_in_line = False
        """Whether the beginning of the line was returned already: what follows in it is not a fence."""

    def feed(self, piece: str) -> str:
        """The part of the answer up to this piece that can be shown and was not returned before."""
        if self._state == "outside":
            return piece
        self._held += piece
        if self._state == "start":
            self._state = self._begin()
        match self._state:
            case "start":
                return ""
            case "outside":
                return self._release()
            case _:
                return self._pass_on()

    def end(self) -> str:
        """The rest. A last line that closes the fence is dropped."""
        if self._state == "inside" and self._held.strip() == _FENCE:
            return ""
        return self._release()

    def _begin(self) -> _State:
        """The state behind the beginning of the answer: `start` until it is clear whether it is a fence around
        Markdown. Drops such a fence."""
        text = self._held.lstrip()
        if not text.startswith(_FENCE):
            return "start" if _FENCE.startswith(text) else "outside"
        line, ended, rest = text.partition("\n")
        language = line.removeprefix(_FENCE).strip().lower()
        if not ended and (not language or any(one.startswith(language) for one in _MARKDOWN)):
            return "start"
        if not language and not rest.strip():
            return "start"
        is_table = not language and rest.lstrip().startswith("|")  # which is no code
        if language not in _MARKDOWN and not is_table:
            return "outside"
        self._held = rest
        return "inside"

    def _pass_on(self) -> str:
        """The lines that are complete, and the beginning of one that is not a fence."""
        output = ""
        while self._state != "outside":
            line, ended, rest = self._held.partition("\n")
            if not ended and not self._is_in_line and line.strip()[:1] in ("", "`"):
                return output
            self._held = rest
            if self._is_in_line or not ended or not self._is_closing(line):
                output += line + ended
            self._is_in_line = not ended
            if not ended:
                return output
        return output + self._release()

    def _is_closing(self, line: str) -> bool:
        """Whether a whole line closes the outer fence; follows the fences within."""
        marks = line.strip()
        if not marks.startswith(_FENCE):
            return False
        if self._state == "nested":
            self._state = "inside" if marks == _FENCE else "nested"
            return False
        self._state = "outside" if marks == _FENCE else "nested"
        return marks == _FENCE

    def _release(self) -> str:
        released, self._held = self._held, ""
        return released


def remove_markdown_fence(text: str) -> str:
    """A whole answer without the fence around it."""
    fence = MarkdownFence()
    return fence.feed(text) + fence.end()
