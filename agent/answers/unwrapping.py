"""Takes off the code fence around a whole Markdown answer, and calls that are written in its place, also from a stream.

With the fence, clients show the source of headings and tables. Fences within the answer stay. Calls are never executed
from here. What a chat template puts around an answer: `agent/llm/thoughts.py`.
"""

import re
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from functools import reduce
from typing import Literal, Protocol

from agent.answers.held_writer import HeldWriter
from agent.core.models import JsonObject
from agent.llm.call_forms import begins_with_call, list_called_names
from agent.llm.call_objects import match_tool_name
from agent.llm.port import ModelChunk, ModelReply
from agent.llm.streamed_reply import StreamedReply
from agent.run_context.answer_stream import DeltaWriter
from agent.run_context.outputs import format_missing_pictures

_FENCE = "```"
_MARKDOWN = ("markdown", "md")
_DECIDED_CHARS = 64
"""From here on, a text that does not begin with a call is passed on."""
_FIRST_CHARS = "<[>{`"
"""What calls begin with."""
_TEMPLATE = ("<", "[TOOL_CALLS]")
_FENCE_LINE = re.compile(r"```[ \t]*+([\w-]*+)[ \t]*+\n\s*+(.?)")
_CALL_LANGUAGES = ("", "json", "json5", "tool_call", "tool_calls", "tool_code", "xml")
_State = Literal["start", "inside", "nested", "outside"]


class TextFilter(Protocol):
    """Passes a text on that comes in pieces, and takes something out of it."""

    def feed(self, piece: str) -> str:
        """The part of the text up to this piece that can be shown and was not returned before."""
        ...

    def end(self) -> str:
        """The rest."""
        ...


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


class StrayCalls:
    """Passes an answer on, unless it begins with a call: then it is held to its end. One that is nothing but calls is
    an empty reply, as one of native calls is; a model that is trained on tools may write it.

    `tools` are the names of those that count; with `takes_any`, calls in the tokens of a template count whatever they
    name.
    """

    def __init__(self, tools: Collection[str], *, takes_any: bool) -> None:
        self._tools = tools
        self._takes_any = takes_any
        self._held: list[str] = []
        self._is_call: bool | None = None
        """None while nobody can say."""

    def feed(self, piece: str) -> str:
        """The part of the answer up to this piece that can be shown and was not returned before."""
        if self._is_call is False or not (self._held or piece.strip()):  # white space ahead decides nothing
            return piece
        self._held.append(piece)
        if self._is_call is None:
            self._is_call = self._begins_with_call()
        return self._release() if self._is_call is False else ""

    def end(self) -> str:
        """The rest; "" for calls."""
        text = "".join(self._held).lstrip()
        names = list_called_names(text) if self._is_call is not False else []
        is_template = self._takes_any and text.startswith(_TEMPLATE)
        if any(is_template or match_tool_name(name, self._tools) is not None for name in names):
            self._held.clear()
        return self._release()

    def _begins_with_call(self) -> bool | None:
        text = "".join(self._held).lstrip()
        if (text[:1] in _FIRST_CHARS or "[" in text) and begins_with_call(text):
            return True
        fence = _FENCE_LINE.match(text)
        if fence is not None and (fence[1] not in _CALL_LANGUAGES or fence[2] not in ("", *_FIRST_CHARS)):
            return False
        return None if text[:1] in _FIRST_CHARS and len(text) < _DECIDED_CHARS else False

    def _release(self) -> str:
        released = "".join(self._held)
        self._held.clear()
        return released


async def read_answer(
    stream: AsyncGenerator[ModelChunk, None],
    writer: DeltaWriter | HeldWriter | None,
    pictures: dict[str, str],
    *,
    build_filters: Callable[[], Sequence[TextFilter]],
) -> ModelReply:
    """Reads the stream to its end through the filters, new ones where it begins again, and adds the pictures that the
    answer does not show. After a break, flushes the text before it."""
    streamed = StreamedReply("")
    filters = build_filters()
    try:
        async with aclosing(stream):
            async for chunk in stream:
                if chunk.restarts:
                    filters = build_filters()
                    if writer is not None:
                        await writer.restart()
                # Mistral sends its reasoning in parts of the content.
                is_bare = bool(chunk.reasoning) and not chunk.provider_fields
                fields: JsonObject = {"reasoning_content": chunk.reasoning} if is_bare else chunk.provider_fields
                text = reduce(lambda piece, one: one.feed(piece), filters, chunk.text) if chunk.text else chunk.text
                if text is not chunk.text or is_bare:
                    chunk = chunk._replace(text=text, provider_fields=fields)  # noqa: PLW2901 - as it is collected
                streamed.add_chunk(chunk)
                if writer is not None:
                    await _show(writer, chunk)
        rest = reduce(lambda piece, one: one.feed(piece) + one.end(), filters, "")
        if streamed.text or rest:
            rest += format_missing_pictures(pictures, streamed.text + rest)
        streamed.add_chunk(ModelChunk(text=rest))
        if writer is not None:
            await writer.add(rest)
    finally:
        if writer is not None:
            await writer.end()
    return streamed.build_reply()


async def _show(writer: DeltaWriter | HeldWriter, chunk: ModelChunk) -> None:
    if chunk.reasoning:
        await writer.add(chunk.reasoning, "reasoning")
    await writer.add(chunk.text)
    if chunk.refusal:
        await writer.add(chunk.refusal, "refusal")
