"""Calls in the markup of chat templates: tags with the name, then JSON or one tag an argument."""

import json
import re
from collections.abc import Mapping

from pydantic import JsonValue

from agent.core.json_schema import get_properties
from agent.core.models import JsonObject
from agent.llm.call_objects import MalformedCallError, RawCall, repair_json

_NAME = r"[\w.\-/]{1,128}"
MARKUP = re.compile(
    rf"<function=(?P<function>{_NAME})>"  # Llama 3.1, Functionary 3.1, Qwen3-Coder, Seed-OSS
    rf"|<(?P<prefix>\uff5cDSML\uff5c)?invoke name=\"(?P<invoke>{_NAME})\">"  # MiniMax M2, DeepSeek V3.2
    rf"|<\uff5ctool▁call▁begin\uff5c>(?:function<\uff5ctool▁sep\uff5c>)?(?P<deepseek>{_NAME})"
    r"(?:<\uff5ctool▁sep\uff5c>|\n)"
    rf"|<\|tool_call_begin\|>\s*(?P<kimi>{_NAME}):\d+\s*<\|tool_call_argument_begin\|>"
    rf"|(?:<\|start\|>assistant)?(?:<\|channel\|>(?:commentary|analysis) )?\s*to=(?P<harmony>{_NAME})"
    r"(?:<\|channel\|>(?:commentary|analysis))?\s*(?:<\|constrain\|>)?(?:json)?\s*<\|message\|>"  # gpt-oss
    rf"|>>>(?P<functionary>{_NAME})\n"
    rf"|(?P<mistral>{_NAME})\[ARGS\](?=\s*{{)"  # Mistral, whose tokens the server left out
    rf"|(?:<\|tool_call>|<start_function_call>)\s*call:(?P<gemma>{_NAME})(?={{)"  # Gemma 4, FunctionGemma
)
"""The beginning of a call, with its name."""
_MISTRAL = re.compile(rf"(?P<mistral>{_NAME})(?:(?:\[CALL_ID\]\w+)?\[ARGS\]|(?=\s*\{{))")
_HUNYUAN = re.compile(rf"(?P<hunyuan>{_NAME})\s*\n(?=```|\{{)")
_GLM = re.compile(rf"(?P<glm>{_NAME})\s*(?=<arg_key>|</tool_call>)")
_CLOSINGS = re.compile(
    r"\s*(?:```)?\s*(?:</function>|<\uff5ctool▁call▁end\uff5c>|<\|tool_call_end\|>|<\|call\|>|<\|end\|>)?"
)
_PARAMETER = re.compile(
    r"\s*<(?:\uff5cDSML\uff5c)?parameter(?:=| name=\"?)(?P<key>[\w.\-]{1,128})\"?"
    r"(?P<kind>(?: string=\"(?:true|false)\")?)>"
)
_PARAMETER_END = re.compile(r"</(?:\uff5cDSML\uff5c)?parameter>")
_NEXT_PARAMETER = re.compile(r"\n(?=<parameter=(?P<key>[\w.\-]{1,128})>\n|</function>\s*(?:</tool_call>|\Z|<))")
"""Where a value ends whose closing tag Qwen3-Coder has left out, as it does now and then."""
_FUNCTION_END = re.compile(r"\s*</(?:function|(?:\uff5cDSML\uff5c)?invoke)>")
_ARG_KEY = re.compile(r"\s*<arg_key>\s*(?P<key>[\w.\-]{1,128})\s*</arg_key>\s*<arg_value>")
_FENCE = re.compile(r"\s*(?:```(?:json)?[ \t]*\n?)?\s*")


class MarkupReader:
    """Reads calls at given positions of one text. `tools` holds the schemas of the arguments by tool."""

    def __init__(self, text: str, tools: Mapping[str, JsonObject]) -> None:
        self._text = text
        self._tools = tools

    def read(self, position: int, marked: re.Match[str] | None, *, after: str) -> tuple[RawCall, int] | None:
        """The call that begins at `position`, and its end. None where no markup begins there.

        `marked` is the match of `MARKUP` there, `after` the token before it. Raises `MalformedCallError`.
        """
        if marked is None:
            if after == "[TOOL_CALLS]":
                marked = _MISTRAL.match(self._text, position)
            elif after == "<tool_call>" and (hunyuan := _HUNYUAN.match(self._text, position)) is not None:
                marked = hunyuan
            elif after == "<tool_call>" and (glm := _GLM.match(self._text, position)) is not None:
                return self._read_pairs(glm["glm"], glm.end(), _ARG_KEY)
            if marked is None:
                return None
        name = next(value for key, value in marked.groupdict().items() if value and key != "prefix")
        start = marked.end()
        if marked.groupdict().get("gemma"):
            return self._read_bare_keys(name, start)
        if "function" in marked.groupdict() and (marked["function"] or marked["invoke"]):
            begin = _FENCE.match(self._text, start)
            if begin is None or self._text[begin.end() : begin.end() + 1] != "{":
                return self._read_pairs(name, start, _PARAMETER)
        return self._read_object(name, start)

    def _read_object(self, name: str, start: int) -> tuple[RawCall, int]:
        """Reads JSON arguments, perhaps fenced, and the token that closes the call."""
        begin = _FENCE.match(self._text, start)
        start = begin.end() if begin is not None else start
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(self._text, start)
        except (ValueError, RecursionError):
            closing = _OBJECT_END.search(self._text, start)
            end = closing.start() if closing is not None else len(self._text)
            value = repair_json(self._text[start:end])
        closed = _CLOSINGS.match(self._text, end)
        return RawCall(name, value), closed.end() if closed is not None else end

    def _read_bare_keys(self, name: str, start: int) -> tuple[RawCall, int]:
        """Reads an object whose keys have no quotes, and whose texts stand between tokens of their own."""
        closing = _GEMMA_END.search(self._text, start)
        if closing is None:
            raise MalformedCallError(f"the call of {name!r} is not complete")
        pieces = _GEMMA_TEXT.split(self._text[start : closing.start()])
        texts = [json.dumps(piece, ensure_ascii=False) for piece in pieces[1::2]]
        others = [_BARE_KEY.sub(r'\g<before>"\g<key>":', piece) for piece in pieces[::2]]
        written = "".join(one for pair in zip(others, [*texts, ""], strict=True) for one in pair)
        try:
            return RawCall(name, json.loads(written)), closing.end()
        except (ValueError, RecursionError) as error:
            raise MalformedCallError(f"the arguments of {name!r} are not complete") from error

    def _read_pairs(self, name: str, position: int, opening: re.Pattern[str]) -> tuple[RawCall, int]:
        """Reads one tag an argument, whose values are text: the tool's schema says what they are."""
        arguments: JsonObject = {}
        closing = _ARG_END if opening is _ARG_KEY else _PARAMETER_END
        while (begin := opening.match(self._text, position)) is not None:
            end = self._find_end(name, begin.end(), closing)
            if end is None or begin["key"] in arguments:
                raise MalformedCallError(f"the arguments of {name!r} are not complete")
            value = self._text[begin.end() : end.start()]
            is_text = "true" in begin["kind"] if begin.groupdict().get("kind") else None
            arguments[begin["key"]] = self._read_value(name, begin["key"], value, is_text=is_text)
            position = end.end()
        closed = (_FUNCTION_END if opening is _PARAMETER else _GLM_END).match(self._text, position)
        if closed is None:
            raise MalformedCallError(f"the call of {name!r} is not complete")
        return RawCall(name, arguments), closed.end()

    def _find_end(self, name: str, start: int, closing: re.Pattern[str]) -> re.Match[str] | None:
        """The end of a value: its closing tag; one that is left out ends at the next argument that the tool declares.
        A text may hold such tags itself, and its own closing tag then stands before the next argument."""
        end = closing.search(self._text, start)
        if closing is not _PARAMETER_END:
            return end
        declared = get_properties(self._tools.get(name))
        for following in _NEXT_PARAMETER.finditer(
            self._text, start, end.start() if end is not None else len(self._text)
        ):
            key = following["key"]
            if key is None or key in declared:
                return following
        return end

    def _read_value(self, name: str, key: str, text: str, *, is_text: bool | None) -> JsonValue:
        """A value as its schema says: `007` stays text where a text is expected."""
        text = text.removeprefix("\n").removesuffix("\n")
        if is_text is None:
            schema = get_properties(self._tools.get(name)).get(key)
            is_text = isinstance(schema, dict) and schema.get("type") == "string"
        if is_text:
            return text
        try:
            value: JsonValue = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return {"True": True, "False": False, "None": None}.get(text.strip(), text)
        return value


_ARG_END = re.compile(r"</arg_value>")
_GLM_END = re.compile(r"\s*</tool_call>")
_OBJECT_END = re.compile(
    r"\n?```|</function>|</(?:\uff5cDSML\uff5c)?invoke>|<\uff5ctool▁call▁end\uff5c>|<\|\w+\|>|\n>>>|\[TOOL_CALLS\]"
)
_GEMMA_END = re.compile(r"(?<!\s)\s*(?:<tool_call\|>|<end_function_call>)")
_GEMMA_TEXT = re.compile(r"(?:<\|\"\|>|<escape>)(.*?)(?:<\|\"\|>|<escape>)", re.DOTALL)
"""A text in a call of Gemma's."""
_BARE_KEY = re.compile(r"(?P<before>[{,]\s*)(?P<key>[\w.\-]+)\s*:")
