"""Interprets a planner's reply: an answer, a plan, a question to the user, or a search for further tools.

Accepts two forms: a first line `ANSWER` before plain text, or one JSON object with `kind`. A reply with a plan is a
plan, whatever else it contains. `AnswerDetector` finds the answer while the reply is streamed.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent.core.errors import PlanInvalidError
from agent.core.models import JsonObject, Tier
from agent.llm.call_forms import holds_call, read_calls
from agent.llm.port import ModelReply
from agent.llm.thoughts import THOUGHT
from agent.planning.parse import UNENDED_THINKING, find_object, parse_reply, parse_strict, strip_thinking

_MARKER = re.compile(r"[*#`_\s]*ANSWER\b[*`_]*[ \t]*(?::[*`_]*)?\s*")
_PLAN_KEY = re.compile(r"[\"'](?:steps|kind|tool|depends_on|inputs)[\"']\s*:")
"""Keys of the JSON form. Prose without these keys is not a plan."""
WORDS_BESIDE_CALL = "the reply holds words beside a call; reply with the calls alone, or with an answer that holds none"
_QUESTION_CHARS = 2_000
_QUERY_CHARS = 400
_TIERS: dict[str, Tier] = {"fast": "fast", "high": "high"}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. With an empty `text`, a completion on `tier` writes it."""

    text: str
    tier: Tier | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to the user."""

    question: str


@dataclass(frozen=True, slots=True)
class FindTools:
    """A search of the catalogue."""

    query: str


@dataclass(frozen=True, slots=True)
class PlanReply:
    """A plan object with its list of steps, not yet normalised."""

    data: JsonObject


Reply = Answer | Ask | FindTools | PlanReply


def list_calls(data: JsonObject) -> list[JsonObject]:
    """The steps of a plan object."""
    steps = data.get("steps")
    return [step for step in (steps if isinstance(steps, list) else []) if isinstance(step, dict)]


def list_todo(data: JsonObject) -> list[str]:
    """The parts of the request that a plan object names, those for later rounds too."""
    todo = data.get("todo")
    return [str(part) for part in (todo if isinstance(todo, list) else [])]


def get_written(reply: ModelReply) -> str:
    """The text of a reply to a decision. Some endpoints send the JSON of a thinking model as its reasoning alone.

    Raises `PlanInvalidError` for a reply of thoughts only."""
    reasoning = reply.reasoning.strip()
    if reply.text.strip() or reply.tool_calls or not reasoning or reply.finish_reason == "length":
        return reply.text
    if parse_strict(reasoning) is None:
        raise PlanInvalidError([UNENDED_THINKING])
    return reasoning


def read_any_form(reply: ModelReply, tools: Mapping[str, JsonObject]) -> Reply:
    """Reads a reply in the forms of `read_reply`, or as calls of `tools`, native ones or in any form that models write.

    `tools` has the schemas of the arguments by name. Raises `PlanInvalidError` as `read_reply`, and for words beside a
    call: they may quote it, and answer nothing."""
    if reply.refused:
        return Answer(reply.text)
    text, meant, problem = get_written(reply), None, None
    try:
        meant = None if reply.tool_calls else read_reply(text, reply.finish_reason)
    except PlanInvalidError as error:
        problem = error
    if isinstance(meant, Ask | FindTools | PlanReply) or (meant is not None and has_marker(text)):
        return meant
    calls = list_written_calls(reply, tools)
    if calls and reply.finish_reason != "length":
        return PlanReply({"steps": [*calls]})
    if reply.tool_calls:
        problem = PlanInvalidError([read_calls(text, reply.tool_calls, tools).reason])
    if problem is not None or meant is None:
        raise problem or PlanInvalidError([WORDS_BESIDE_CALL])
    refuse_words_beside_call(text, tools)
    return meant


def list_written_calls(reply: ModelReply, tools: Mapping[str, JsonObject]) -> list[JsonObject]:
    """The calls of a reply that is nothing else, as steps. One that is written twice is one."""
    calls: list[JsonObject] = []
    for call in read_calls(reply.text, reply.tool_calls, tools).calls:
        step: JsonObject = {"tool": call.name, "inputs": call.arguments}
        calls += [step] if step not in calls else []
    return calls


def refuse_words_beside_call(text: str, tools: Mapping[str, JsonObject]) -> None:
    """Raises `PlanInvalidError` for words that hold a call of one of the tools."""
    if holds_call(text, tools):
        raise PlanInvalidError([WORDS_BESIDE_CALL])


def has_marker(text: str) -> bool:
    """Whether a reply begins with the line ANSWER."""
    return _MARKER.match(_remove_thinking(text)) is not None


def read_reply(text: str, finish_reason: str = "stop") -> Reply:
    """The kind of a reply and its content. Raises `PlanInvalidError` if it is truncated or unusable."""
    body = _remove_thinking(text)
    marked = _MARKER.match(body)
    if marked is not None:
        return _read_marked(body[marked.end() :], finish_reason)
    if body[:1] not in ("{", "[", "`", "") and not _PLAN_KEY.search(body):
        return Answer(body)  # a truncated answer is still an answer
    return _read_json(body, finish_reason)


def starts_with_object(text: str) -> bool:
    """Whether a reply begins with its JSON, perhaps fenced. A plan elsewhere may be a quotation."""
    body = _remove_thinking(text)
    marked = _MARKER.match(body)
    return (body[marked.end() :] if marked is not None else body).lstrip()[:1] in ("{", "[", "`")


def _read_marked(rest: str, finish_reason: str) -> Reply:
    """Interprets the text after the line `ANSWER`: an answer, unless it contains a plan."""
    if _PLAN_KEY.search(rest):
        try:
            reply = _read_json(rest, finish_reason)
        except PlanInvalidError:
            reply = None
        if isinstance(reply, PlanReply) or (reply is not None and rest.lstrip()[:1] in ("{", "`")):
            return reply
    if not rest.strip():
        raise PlanInvalidError(["the line ANSWER is not followed by an answer"])
    return Answer(rest)


def _read_json(body: str, finish_reason: str) -> Reply:
    if finish_reason == "length":
        return PlanReply(parse_reply(body, finish_reason))  # raises the problem of a truncated reply
    whole = parse_strict(body)
    value = find_object(body, whole)
    if value is None or value.get("steps"):
        return PlanReply(parse_reply(body, finish_reason, whole))
    kind = str(value.get("kind") or "").strip().lower()
    answer, question, query = (_get_text(value, name) for name in ("answer", "question", "query"))
    match kind:
        case "ask" if question or answer:
            return Ask((question or answer).strip()[:_QUESTION_CHARS])
        case "find_tools" if query:
            return FindTools(query.strip()[:_QUERY_CHARS])
        case "answer" if answer:
            return Answer(answer)
        case "" | "plan" | "answer" if isinstance(value.get("steps"), list):
            tier = value.get("answer_tier")
            return Answer(answer, _TIERS.get(tier) if isinstance(tier, str) else None)
    if kind in ("ask", "find_tools", "answer"):
        missing = {"ask": "question", "find_tools": "query", "answer": "answer"}[kind]
        raise PlanInvalidError([f'a reply of kind "{kind}" needs a text "{missing}"'])
    return PlanReply(parse_reply(body, finish_reason, whole))


def _get_text(value: JsonObject, name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) and text.strip() else ""


def _remove_thinking(text: str) -> str:
    body = text.lstrip().lstrip("\ufeff").lstrip()
    return body if body[:1] in ("{", "[") else strip_thinking(body).lstrip()


class AnswerDetector:
    """Finds the answer in a reply while it is streamed.

    `feed` returns the new text of the answer that is certain, or "". It returns only text that `read_reply` would
    return for the whole reply, except if a plan follows after the answer's start.
    """

    def __init__(self) -> None:
        self._text = ""
        self._read = 0
        """The number of examined characters."""
        self._has_closing_tag = False
        self._form = ""
        """`text` after the line ANSWER, `json` in the value of `answer`, `over` after the answer's end."""

    def feed(self, piece: str) -> str:
        """Adds a piece of the reply and returns the new text of the answer."""
        self._text += piece
        if not self._form and not (self._may_start(piece) and self._find_start()):
            return ""
        return self._read_plain() if self._form == "text" else self._read_value() if self._form == "json" else ""

    def _may_start(self, piece: str) -> bool:
        """Whether an answer can begin in this piece: long reasoning is not searched at every piece."""
        head = self._text[:200].lstrip()[:1]
        if head == "<":  # reasoning in tags: nothing begins before they close
            self._has_closing_tag = self._has_closing_tag or "</" in self._text[-len(piece) - 1 :]
            return self._has_closing_tag
        return '"' in piece if head in ("{", "`") else True

    def _find_start(self) -> bool:
        begin = len(self._text) - len(self._text.lstrip())
        if (thought := THOUGHT.match(self._text, begin)) is not None:
            begin = thought.end()
        marked = _MARKER.match(self._text, begin)
        if marked is not None and marked.end() < len(self._text):
            self._form, self._read = "text", marked.end()
            return True
        value = _ANSWER_VALUE.match(self._text, begin)
        if value is not None:
            self._form, self._read = "json", value.end()
            return True
        return False

    def _read_plain(self) -> str:
        """The text up to a possible start of a plan."""
        start = self._read
        for brace in _BRACE.finditer(self._text, self._read):
            if _PLAN_START.match(self._text, brace.start()):
                if _PLAN_KEY.match(self._text, brace.end()):
                    self._form = "over"
                self._read = brace.start()
                return self._text[start : self._read]
        self._read = len(self._text)
        return self._text[start:]

    def _read_value(self) -> str:
        """The JSON string up to its closing quote, without an incomplete escape at the end."""
        matched = _STRING_PART.match(self._text, self._read)
        raw = matched[0] if matched is not None else ""
        high = _HIGH_SURROGATE.search(raw)
        raw = raw[: high.start()] if high is not None else raw
        self._read += len(raw)
        if self._text[self._read : self._read + 1] == '"':
            self._form = "over"
        return str(json.loads(f'"{raw}"', strict=False))


_ANSWER_VALUE = re.compile(
    r"\s*(?:```(?:json)?\s*)?\{(?:\s*\"reasoning\"\s*:\s*\"(?:[^\"\\]|\\.)*\"\s*,)?\s*\"kind\"\s*:\s*\"answer\"\s*,"
    r"(?:\s*\"reasoning\"\s*:\s*\"(?:[^\"\\]|\\.)*\"\s*,)?\s*\"answer\"\s*:\s*\""
)
_BRACE = re.compile(r"[{\[]\s*")
_PLAN_START = re.compile(r"[{\[]\s*(?:$|[\"'](?:\w{0,12}$|(?:steps|kind|tool|reasoning|goal|depends_on|inputs)[\"']?))")
_STRING_PART = re.compile(r"(?:[^\"\\]|\\u[0-9a-fA-F]{4}|\\[\"\\/bfnrt])*")
_HIGH_SURROGATE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}$")
