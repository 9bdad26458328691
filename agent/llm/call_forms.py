"""Reads tool calls from a model's reply, native or written in any of the forms that model families are trained on.

Servers leave written calls in the text where they do not know the model's template. A reply counts only if it is
nothing but calls, besides thinking, code fences and the tokens of its template: a text that quotes a call makes none.
Nothing here raises for what a model wrote, and the time is linear in its length. Pure functions.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from agent.core.models import JsonObject
from agent.llm.call_markup import MARKUP, MarkupReader
from agent.llm.call_objects import (
    MalformedCallError,
    RawCall,
    match_tool_name,
    read_named_calls,
    repair_json,
    to_arguments,
    unwrap_calls,
)
from agent.llm.port import ModelToolCall
from agent.llm.python_calls import parse_python_calls
from agent.llm.thoughts import MARK, split_text

MAX_CHARS = 200_000
MAX_CALLS = 100
OPENING_CHARS = 400
"""Characters in which a call shows that it is one."""

_FENCE = r"```(?:json5?|tool_calls?|tool_code|xml)?[ \t]*(?=\n|\Z|[\[{<`])"
_TEMPLATE = (
    r"functools(?=\[)|\[TOOL_CALLS\]"
    r"|</?(?:\w+:)?(?:tool_calls?|TOOLCALL|function_calls?|\uff5cDSML\uff5cfunction_calls)>"
    r"|<\|/?(?:tool_call|python_tag|START_ACTION|END_ACTION|tool_call_start|tool_call_end|python_start|python_end"
    r"|tool_calls?_section_begin|tool_calls?_section_end|action_start|action_end|plugin|tools_prefix|tools_suffix)\|>"
    r"|<\uff5c(?:tool▁calls▁begin|tool▁calls▁end)\uff5c>"
)
_TOKENS = re.compile(rf"{_FENCE}|Action:|{_TEMPLATE}")
"""The decoration around calls: fences, and the tokens of templates. Each call between them is
read for what it is, because models mix the forms."""
_GAP = re.compile(r"[\s;,]*")
_PYTHON = re.compile(r"\[?\s*[A-Za-z_][\w.]*\(")
_OBJECT = r"(?:\[\s{0,40})?\{\s{0,40}[\"'](?:name|tool\w*|function\w*|action\w*|type|id)[\"']"
"""The beginning of a call in JSON."""
_START = re.compile(rf"{MARKUP.pattern}|{_TOKENS.pattern}|{_OBJECT}")
"""What a call may begin with in the middle of a text. Python's form is none: sentences about a tool hold it too."""
_OPENING = re.compile(rf"(?:{MARKUP.pattern}|{_TEMPLATE}|(?:{_FENCE}\s{{0,40}})?{_OBJECT})")
"""What a text begins with that may be nothing but calls, those in Python's form left out."""
_REACT = re.compile(r"Action:[ \t]*(?P<name>[\w.\-/]{1,128})[ \t]*\n[ \t]*Action Input:")
"""A call in the form of ReAct prompts. It is asked about, not made: texts about agents are full of them."""
MAX_SEARCHED_CHARS, MAX_STARTS = 4_000, 20
"""How much of a text is searched for a call among words, and at how many places."""
_EXCERPT = 60


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call of a known tool."""

    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class CallReading:
    """The calls of a reply. Without calls, `reason` says why there are none."""

    calls: tuple[WrittenCall, ...] = ()
    reason: str = ""


def read_calls(text: str, tool_calls: Sequence[ModelToolCall], tools: Mapping[str, JsonObject]) -> CallReading:
    """The calls of a reply. `tools` holds the JSON schemas of the arguments by the names of the tools.

    Native calls count whatever the text beside them says. One call that is malformed, or of an unknown tool,
    invalidates all.
    """
    try:
        raw = [_read_native(call) for call in tool_calls] or _CallReader(text, tools).read()
        if len(raw) > MAX_CALLS:
            raise MalformedCallError(f"the reply holds more than {MAX_CALLS} calls")
        return CallReading(tuple(_check_call(call, tools) for call in raw))
    except MalformedCallError as error:
        return CallReading(reason=str(error))


def begins_with_call(text: str) -> bool:
    """Whether a text, without white space ahead, begins with what may be a call, those in Python's form left out."""
    return _OPENING.match(text[:OPENING_CHARS]) is not None


def list_called_names(text: str) -> list[str]:
    """The names that the calls of a reply name, in its spelling; [] for a reply that is anything else."""
    try:
        return [call.name for call in _CallReader(text, {}).read()]
    except MalformedCallError:
        return []


def list_held_names(text: str) -> list[str]:
    """The names of the calls that a text holds, also between other words, as far as they can be read."""
    try:
        return [*_CallReader(text[:MAX_SEARCHED_CHARS], {}).iter_names()]
    except MalformedCallError:
        return []


def holds_call(text: str, tools: Mapping[str, JsonObject]) -> bool:
    """Whether a text that is more than calls holds a call of one of the tools, by name."""
    return any(match_tool_name(name, tools) is not None for name in list_held_names(text))


def _read_native(call: ModelToolCall) -> RawCall:
    return RawCall(call.name, call.arguments)


def _check_call(call: RawCall, tools: Mapping[str, JsonObject]) -> WrittenCall:
    name = match_tool_name(call.name, tools)
    if name is None:
        raise MalformedCallError(f"there is no tool named {call.name[:_EXCERPT]!r}")
    return WrittenCall(name, to_arguments(name, call.arguments))


class _CallReader:
    """Reads one text from its start to its end."""

    def __init__(self, text: str, tools: Mapping[str, JsonObject]) -> None:
        if len(text) > MAX_CHARS:
            raise MalformedCallError(f"the reply is longer than {MAX_CHARS:,} characters")
        self._text = _strip_turn(text)
        self._markup = MarkupReader(self._text, tools)
        self._position = 0
        self._token = ""
        """The token before the position, if one is."""
        self._calls: list[RawCall] = []

    def read(self) -> list[RawCall]:
        """The calls. Raises `MalformedCallError` where there is anything else, or nothing."""
        while True:
            self._skip_gap()
            if self._position >= len(self._text):
                break
            token = _TOKENS.match(self._text, self._position)
            if token is not None:
                self._position, self._token = token.end(), token[0]
                continue
            self._read_item()
            self._token = ""
            if len(self._calls) > MAX_CALLS:
                raise MalformedCallError(f"the reply holds more than {MAX_CALLS} calls")
        if not self._calls:
            raise MalformedCallError("the reply holds no call")
        return self._calls

    def iter_names(self) -> Iterator[str]:
        """Yields the names of the calls between other words, as far as these can be read."""
        yield from (call["name"] for call in islice(_REACT.finditer(self._text), MAX_STARTS))
        for start in islice(_START.finditer(self._text), MAX_STARTS):
            self._position, self._token, self._calls = start.start(), "", []
            self._skip_gap()
            while (token := _TOKENS.match(self._text, self._position)) is not None:
                self._position, self._token = token.end(), token[0]
                self._skip_gap()
            with suppress(MalformedCallError):
                if self._position < len(self._text):
                    self._read_item()
            yield from (call.name for call in self._calls)

    def _skip_gap(self) -> None:
        gap = _GAP.match(self._text, self._position)
        self._position = gap.end() if gap is not None else self._position

    def _read_item(self) -> None:
        """Reads what begins at the position: a call in markup, JSON, or Python."""
        marked = MARKUP.match(self._text, self._position)
        if marked is not None or self._token in ("<tool_call>", "[TOOL_CALLS]"):
            read = self._markup.read(self._position, marked, after=self._token)
            if read is not None:
                call, self._position = read
                self._calls.append(call)
                return
        if self._token.startswith("<|tools_prefix") and self._text[self._position] == "[":
            self._calls += read_named_calls(self._read_json())
        elif _PYTHON.match(self._text, self._position):
            segment = self._get_segment()
            self._calls += parse_python_calls(segment)
            self._position += len(segment)
        elif self._text[self._position] in "{[":
            self._calls += unwrap_calls(self._read_json())
        else:
            excerpt = self._text[self._position : self._position + _EXCERPT]
            raise MalformedCallError(f"the reply holds other text than calls: {excerpt!r}")

    def _read_json(self) -> object:
        """The JSON value at the position; one that is slightly wrong is repaired, if it is closed."""
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(self._text, self._position)
        except (ValueError, RecursionError):
            segment = self._get_segment()
            value, end = repair_json(segment), self._position + len(segment)
        self._position = end
        return value

    def _get_segment(self) -> str:
        """The text up to the next token at the start of a line, or of a closing tag, or to the end."""
        end = _SEGMENT_END.search(self._text, self._position)
        return self._text[self._position : end.start() if end is not None else len(self._text)]


_SEGMENT_END = re.compile(r"\n[ \t]*```|```\s*\Z|</(?:\w+:)?(?:tool_calls?|TOOLCALL|function_calls?)>|<\|/?\w+\|>")


def _strip_turn(text: str) -> str:
    """The reply without its thinking and the token that ends its turn. Raises `MalformedCallError` for thinking
    without an end.
    """
    split = split_text(text.strip())
    if split.is_open:
        raise MalformedCallError("the reply ends within the model's thinking")
    if MARK.sub("", split.rest).strip():  # words behind the end make a quotation of the call
        raise MalformedCallError(f"the reply holds other text than calls: {split.rest.strip()[:_EXCERPT]!r}")
    return split.text.strip().removesuffix("<|call|>").rstrip()
