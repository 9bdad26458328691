"""`StreamedReply`: collects the chunks of a stream into the reply that they form.

`ReplySplitter` takes thoughts and leaked tokens off them, by the table in `agent/llm/thoughts.py`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from agent.core.events import FailedUpstream
from agent.core.models import JsonObject
from agent.llm.call_arguments import CallArguments, read_object
from agent.llm.port import ONE_CALL, ModelChunk, ModelReply, ModelRequest, ModelToolCall, read_end
from agent.llm.replies import join_fields, make_ids_distinct, read_arguments, read_extra_fields
from agent.llm.surrogates import join_surrogates
from agent.llm.thoughts import (
    BARE_BEGIN,
    MAY_BEGIN,
    Piece,
    ThoughtSplitter,
    is_never_asked,
    join_pieces,
    split_text,
)

_WRITTEN = frozenset({"completion", "skill", "task", "subagent"})
"""The purposes whose replies are texts for somebody. The engine asks for no tags of thoughts."""


class StreamedReply:
    """A reply that is still being streamed. `model` is the requested one.

    `finish_reason` is None until the stream has it. The caller sets `usage`, because an endpoint may not report it.
    """

    def __init__(self, model: str) -> None:
        self.finish_reason: str | None = None
        self.requests = 1
        self.upstream = ""
        self.failed_upstreams: tuple[FailedUpstream, ...] = ()
        self.usage = ONE_CALL
        self._model = model
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._deltas: list[JsonObject] = []
        self._fields: JsonObject = {}

    def add_chunk(self, chunk: ModelChunk) -> None:
        """Adds the next chunk. The first one names the upstream and counts the requests."""
        self.finish_reason = chunk.finish_reason or self.finish_reason
        self.requests = max(self.requests, chunk.requests)
        self.upstream = chunk.upstream or self.upstream
        self.failed_upstreams = chunk.failed_upstreams or self.failed_upstreams
        self._deltas += chunk.tool_calls
        if chunk.provider_fields:
            join_fields(self._fields, chunk.provider_fields)
        if chunk.restarts:
            self._text.clear()
        self._text.append(chunk.text)
        self._reasoning.append(chunk.reasoning)
        self._refusal.append(chunk.refusal)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    def build_reply(self) -> ModelReply:
        """The whole reply. A refusal counts as its text only if there is no other."""
        text, refusal = self.text, "".join(self._refusal)
        return ModelReply(
            text or refusal,
            self._model,
            self.finish_reason or "stop",
            self.usage,
            parse_tool_calls(self._deltas),
            "".join(self._reasoning),
            requests=self.requests,
            provider_fields=self._fields,
            refused=bool(refusal) and not text,
            upstream=self.upstream,
            failed_upstreams=self.failed_upstreams,
        )


class ReplySplitter:
    """Splits the chunks of one streamed reply into thoughts and answer. The arguments as in `ThoughtSplitter`."""

    def __init__(self, opened: str = "", is_asked: Callable[[str], bool] = is_never_asked) -> None:
        self.is_beyond_end = False
        """Whether the model goes on behind the end of its turn."""
        self._is_asked = is_asked
        self._thoughts = ThoughtSplitter(opened, is_asked=is_asked) if opened else None
        """Made at the first text that may be a token: most replies have none."""
        self._passed: list[str] = []
        self._is_cut = False
        """Whether the finish reason says that the reply is not whole."""

    @property
    def opened(self) -> str | None:
        """The tag that ends a thought whose beginning is in the prompt, or ""; None before any text."""
        if self._thoughts is not None:
            return self._thoughts.opened
        return "" if self._passed else None

    @property
    def own_tags(self) -> frozenset[str]:
        """As in `ThoughtSplitter`."""
        return frozenset() if self._thoughts is None else frozenset(self._thoughts.own_tags)

    def split(self, chunk: ModelChunk) -> ModelChunk:
        """The chunk with its thought as reasoning, and without what follows the end of the turn."""
        text = chunk.text
        if self._thoughts is None:
            if not text:
                return chunk
            if MAY_BEGIN.search(text) is None and (self._passed or not (text.isspace() or BARE_BEGIN.match(text))):
                self._passed.append(text)
                return chunk
            self._thoughts = ThoughtSplitter(before="".join(self._passed), is_asked=self._is_asked)
        if text:
            self.is_beyond_end = self._thoughts.is_over and not text.isspace()
        elif chunk.finish_reason is None:
            return chunk
        piece = self._thoughts.feed(text)
        if chunk.finish_reason is not None:
            self._is_cut = not read_end(chunk.finish_reason).is_whole
            piece = join_pieces(piece, self._thoughts.end(is_cut=self._is_cut))
        if piece.text == text and not piece.thought:
            return chunk
        reasoning = chunk.reasoning + piece.thought
        return chunk._replace(text=piece.text, reasoning=reasoning, restarts=piece.restarts)

    def end(self) -> ModelChunk | None:
        """What is left at the end of a stream; None if nothing is."""
        thought, text, restarts = self._thoughts.end(is_cut=self._is_cut) if self._thoughts is not None else Piece()
        return ModelChunk(text, thought, restarts=restarts) if thought or text or restarts else None


class ThoughtMemory:
    """The models whose templates begin a thought in the prompt, as their newest replies show: the next one is streamed
    as a thought from its beginning. A reply under a schema says nothing of it, because the grammar allows no thought.

    A request may ask for a text with the tags of a thought: then they are a part of the answer, unless the model has
    written them without being asked.
    """

    def __init__(self) -> None:
        self._opened: dict[str, str] = {}
        self._own_tags: dict[str, frozenset[str]] = {}

    def begin(self, request: ModelRequest) -> ReplySplitter:
        """A splitter for the reply to a request."""
        opened = "" if _has_form(request) else self._opened.get(request.model, "")
        return ReplySplitter(opened, self._build_is_asked(request))

    def learn(self, request: ModelRequest, splitter: ReplySplitter) -> None:
        """Remembers what a streamed reply showed."""
        self._learn_tags(request, splitter.own_tags)
        if splitter.opened is not None:
            self._remember(request, splitter.opened)

    def split_reply(self, request: ModelRequest, reply: ModelReply) -> ModelReply:
        """A whole reply with its thought as reasoning, and without what follows the end of its turn."""
        if reply.refused or not reply.text:
            return reply
        is_cut = not read_end(reply.finish_reason).is_whole
        # Only a reply that is cut may be all of a thought that the prompt began.
        opened = self._opened.get(request.model, "") if is_cut and not _has_form(request) else ""
        if not opened and MAY_BEGIN.search(reply.text) is None and BARE_BEGIN.match(reply.text) is None:
            self._remember(request, "")
            return reply
        split = split_text(reply.text, is_cut=is_cut, opened=opened, is_asked=self._build_is_asked(request))
        self._learn_tags(request, split.own_tags)
        self._remember(request, split.opened)
        if split.text == reply.text:
            return reply
        return replace(reply, text=split.text, reasoning=reply.reasoning + split.thought)

    def _build_is_asked(self, request: ModelRequest) -> Callable[[str], bool]:
        own = self._own_tags.get(request.model, frozenset())
        texts: list[str] = []  # read at the first token: most replies have none

        def is_asked(token: str) -> bool:
            if token in own:
                return False
            if not texts:
                texts.append("\n".join(_iter_texts(request)).lower())
            return token in texts[0]

        return is_asked if request.purpose in _WRITTEN else is_never_asked

    def _learn_tags(self, request: ModelRequest, tags: frozenset[str]) -> None:
        if tags:
            self._own_tags[request.model] = self._own_tags.get(request.model, frozenset()) | tags

    def _remember(self, request: ModelRequest, opened: str) -> None:
        if _has_form(request):
            return
        if opened:
            self._opened[request.model] = opened
        else:
            self._opened.pop(request.model, None)


def _iter_texts(request: ModelRequest) -> Iterator[str]:
    """Yields what the request says itself. Earlier replies in it may hold what was leaked."""
    for message in request.messages:
        content = message.get("content") if message.get("role") != "assistant" else None
        parts = content if isinstance(content, list) else [{"text": content}]
        texts = (part.get("text") for part in parts if isinstance(part, dict))
        yield from (text for text in texts if isinstance(text, str))


def _has_form(request: ModelRequest) -> bool:
    return request.response_schema is not None or "response_format" in request.options


@dataclass
class _Call:
    """A tool call that is still being streamed."""

    id: str = ""
    name: str = ""
    arguments: CallArguments = field(default_factory=CallArguments)
    extra: JsonObject = field(default_factory=dict)

    def add(self, delta: JsonObject) -> None:
        """Adds one delta."""
        function = _get_function(delta)
        self.id = self.id or str(delta.get("id") or "")  # some servers make up another id for every piece
        self._add_name(str(function.get("name") or ""))
        self.arguments.add(_get_arguments(delta))
        join_fields(self.extra, read_extra_fields(delta))

    def _add_name(self, name: str) -> None:
        """Adds a name: a further piece of it, or the whole again, or all of it up to here."""
        if name != self.name and (not self.name or self.arguments.is_empty):
            self.name = name if name.startswith(self.name) else self.name + name


def parse_tool_calls(deltas: list[JsonObject]) -> tuple[ModelToolCall, ...]:
    """The calls of a stream as a whole reply has them. A call without an id gets one."""
    return make_ids_distinct(
        ModelToolCall(call.id, call.name, read_arguments(join_surrogates(call.arguments.text)), call.extra)
        for call in _join_deltas(deltas)
    )


def to_openai_call(call_id: str, name: str, arguments: str, extra: JsonObject) -> JsonObject:
    """A tool call in OpenAI's wire form, with the provider's own fields."""
    of_function = extra.get("function")
    function: JsonObject = {"name": name, "arguments": arguments}
    if isinstance(of_function, dict):
        function |= of_function
    others = {key: value for key, value in extra.items() if key != "function"}
    return {"id": call_id, "type": "function", "function": function, **others}


def _join_deltas(deltas: list[JsonObject]) -> list[_Call]:
    """The calls in the order they began. Deltas are grouped by `index`, as far as it can be relied on."""
    calls: list[_Call] = []
    newest: dict[str, _Call] = {}
    by_id: dict[str, _Call] = {}
    for delta in deltas:
        index = delta.get("index")
        last = calls[-1] if calls else None
        call = newest.get(str(index)) if index is not None else last
        if call is None:
            call = _find_open_call(last, by_id, delta)
        elif _is_new_call(call, delta, has_index=index is not None):
            call = None
        if call is None:
            call = _Call()
            calls.append(call)
        newest[str(index)] = call
        call.add(delta)
        by_id.setdefault(call.id, call)
    return calls


def _find_open_call(last: _Call | None, by_id: Mapping[str, _Call], delta: JsonObject) -> _Call | None:
    """The call to which a delta with a new index belongs if it does not begin one: the one with its id, or the newest
    that lacks arguments. Some servers give the parts of a call different indexes."""
    if last is None or _get_function(delta).get("name"):
        return None
    if call_id := delta.get("id"):
        return by_id.get(str(call_id))
    return last if last.arguments.value is None else None


def _is_new_call(call: _Call, delta: JsonObject, *, has_index: bool) -> bool:
    """Whether a delta with the index of `call` starts a new call.

    Some endpoints give every parallel call the index 0 (Gemini), or no index; others a new id to every piece of one
    call. Only a delta with a name starts a call, and not while the call before it has none. After complete arguments it
    does, unless it repeats the id and the name, and has no others. Before that, the name is a piece of the same call,
    or repeated; but without an index, a new id starts a call.
    """
    name, call_id = str(_get_function(delta).get("name") or ""), str(delta.get("id") or "")
    if not name or not call.name:
        return False
    complete = call.arguments.value
    if complete is None:
        has_new_id = bool(call_id and call.id) and call_id != call.id
        return has_new_id and (not has_index or (not call.arguments.is_empty and name != call.name))
    if call_id and call_id == call.id and name == call.name:
        own = read_object(_get_arguments(delta))
        return bool(complete and own) and complete != own
    return True


def _get_arguments(delta: JsonObject) -> str:
    """The arguments of a delta as text; "" if it has none."""
    arguments = _get_function(delta).get("arguments")
    return arguments if isinstance(arguments, str) else read_arguments(arguments) if arguments else ""


def _get_function(delta: JsonObject) -> JsonObject:
    function = delta.get("function")
    return function if isinstance(function, dict) else {}
