"""Response bodies of the OpenAI door: the `chat.completion` object, and the chunks of a stream with progress events.

Both end with the run's trace, in four places: top-level `steps` (a list), top-level `metadata` (its strings only, since
OpenAI's SDKs type metadata as `dict[str, str]`), and the whole object as top-level `stepgate` and as the `metadata` of
the message or of the last delta.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json

from agent.core import events as ev
from agent.core.models import JsonObject, Source
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.policy.approval import ASK_PREFIX
from agent.run_context.outputs import number_sources
from agent.runs.response import build_metadata, build_response, get_answer_text
from agent.runs.trace_projection import build_projection
from gateway.render.openwebui import EMPTY_TEXT_EVENT, RichView
from gateway.render.status import StatusLines

PIECE_CHARS = 400
"""Length of the pieces in which a stream sends an answer that was not streamed by the model."""
ASK_TIMEOUT_MS = 240_000
"""Time for which Open WebUI shows an approval question. A later message of the chat still counts as the answer."""
RESTARTED_NOTE = "\n\n(The connection to the model broke; the answer starts again.)\n\n"

_STREAMED_FIELDS = frozenset({"reasoning_content", "reasoning"})
"""Provider fields whose text is streamed in deltas."""


def make_completion_id(run_id: str) -> str:
    """The completion's id. It contains the run's id."""
    return f"chatcmpl-{run_id}"


def build_completion_body(
    events: Sequence[ev.Event], state: RunState | None = None, ignored: Sequence[str] = ()
) -> bytes:
    """A `chat.completion` object as JSON in UTF-8.

    `state` is the state after the events, if the caller has it. `ignored` are parameters of the request without effect.
    """
    state = state or fold(events[0].run_id, events)
    projection = build_projection(events)
    text, metadata = get_answer_text(state), build_metadata(state, projection.list_tool_results())
    answer = next((event.body for event in reversed(events) if isinstance(event.body, ev.AnswerFinished)), None)
    finish = answer.finish_reason if answer else "stop"
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if answer is not None:
        message |= list_provider_fields(answer)
        if answer.refused:
            message |= {"content": None, "refusal": text}
    calls = list(answer.tool_calls) if answer is not None else build_ask_tool_calls(state)
    if calls:
        message["tool_calls"] = calls
        message["content"] = text or None
        finish = "tool_calls"
    choice = {"index": 0, "logprobs": None, "finish_reason": finish}
    shown_metadata = _name_ignored(metadata, ignored)
    body = {
        "id": make_completion_id(state.run_id),
        "object": "chat.completion",
        "created": int(state.created_at),
        "model": state.request.name_room(state.room.id),
        "usage": build_usage_body(metadata["usage"]),
        "metadata": _select_texts(shown_metadata),
    }
    # The body holds the steps three times and the trace twice; each is encoded once.
    steps = to_json(projection.list_lines())
    trace = _append_json(to_json(shown_metadata), b"steps", steps)
    encoded_choice = _append_json(to_json(choice), b"message", _append_json(to_json(message), b"metadata", trace))
    encoded = _append_json(to_json(body), b"choices", b"[%b]" % encoded_choice)
    return _append_json(_append_json(encoded, b"steps", steps), b"stepgate", trace)


def _append_json(encoded: bytes, name: bytes, value: bytes) -> bytes:
    """A JSON object, which is not empty, with one more field, whose value is JSON too."""
    return b'%b,"%b":%b}' % (encoded[:-1], name, value)


def list_provider_fields(answer: ev.AnswerFinished) -> JsonObject:
    """The fields that the provider expects back with the answer.

    Reasoning is given as `reasoning_content` too, as in streams.
    """
    fields = dict(answer.provider_fields)
    if "reasoning" in fields:
        fields.setdefault("reasoning_content", fields["reasoning"])
    return fields


def build_trace_fields(trace: Mapping[str, Any]) -> dict[str, Any]:
    """The top-level fields of a completion, or of a stream's last chunk, that hold the run's trace."""
    return {
        "steps": trace["steps"],
        "metadata": _select_texts(trace),
        "stepgate": trace,
    }


def _select_texts(trace: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in trace.items() if isinstance(value, str)}


def build_trace(steps: Sequence[Any], metadata: Mapping[str, Any], ignored: Sequence[str]) -> dict[str, Any]:
    """The whole trace of a run, with the names of the request's parameters without effect."""
    return {"steps": steps, **_name_ignored(metadata, ignored)}


def _name_ignored(metadata: Mapping[str, Any], ignored: Sequence[str]) -> dict[str, Any]:
    """A run's metadata with the names of the request's parameters without effect."""
    named = {"ignored_parameters": list(ignored)} if ignored else {}
    return {**metadata, "runtime": {**metadata["runtime"], **named}}


def build_usage_body(usage: dict[str, Any]) -> JsonObject:
    """The token counts under OpenAI's names. The parts of a total are named where a provider reports them."""
    body: JsonObject = {
        "prompt_tokens": usage["prompt_tokens"],
        "completion_tokens": usage["completion_tokens"],
        "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"],
    }
    if usage["cached_tokens"]:
        body["prompt_tokens_details"] = {"cached_tokens": usage["cached_tokens"]}
    if usage["reasoning_tokens"]:
        body["completion_tokens_details"] = {"reasoning_tokens": usage["reasoning_tokens"]}
    return body


class OpenAIChunks:
    """Encodes the events of one run as the chunks of a streamed completion.

    `rich` adds frames that only Open WebUI understands. Every other client gets plain `chat.completion.chunk`s.
    """

    def __init__(
        self, run_id: str, model: str, *, include_usage: bool, rich: bool, ignored: Sequence[str] = ()
    ) -> None:
        self._base: dict[str, Any] = {
            "id": make_completion_id(run_id),
            "object": "chat.completion.chunk",
            "created": 0,
            "model": model,
        }
        self._include_usage = include_usage
        self._ignored = ignored
        self._rich = RichView(run_id) if rich else None
        self._status = StatusLines()
        self._events: list[ev.Event] = []
        self._has_status = False
        self._text_sent = False
        self._quotes_sent: dict[int, set[str]] = {}

    def encode_event(self, event: ev.Event) -> Iterator[str]:
        """Yields the JSON of each frame that the event adds to the stream, in order."""
        self._events.append(event)
        if isinstance(event.body, ev.RunCreated):
            self._base["created"] = int(event.at)
            yield self._encode_delta({"role": "assistant", "content": ""})
        line = self._status.format_event(event)
        if self._rich is not None:
            yield from (json.dumps(extra, ensure_ascii=False) for extra in self._rich.build_card_events(event))
            yield from (self._encode_progress(rider) for rider in self._rich.build_task_events(event))
        if line is not None:
            self._has_status = True
            yield self._encode_progress({"type": "status", "data": {"description": line, "done": False}})
        match event.body:
            case ev.AnswerStarted(restarted=True) if self._text_sent:
                yield from self._encode_restart()
            case ev.AnswerDelta(kind="reasoning", text=text):
                yield self._encode_delta({"reasoning_content": text})
            case ev.AnswerDelta(kind="refusal", text=text) if self._rich is None:
                yield self._encode_delta({"refusal": text})
                self._text_sent = True
            case ev.AnswerDelta(text=text, sources=sources):
                yield from self._encode_known_sources(sources)
                yield self._encode_delta({"content": text})
                self._text_sent = True
            case ev.AnswerFinished() as answer:
                yield from self._encode_answer(answer)
            case body if body.terminal:
                yield from self._encode_end(event)
            case _:
                return

    def encode_question(self) -> Iterator[str]:
        """Yields the frames of the approval question that ends a waiting run's turn.

        Where the client offers Open WebUI's `ask_user`, the question is a call of that tool.
        """
        state = fold(self._events[0].run_id, self._events)
        yield self._encode_delta({"content": build_response(self._events, state).response})
        calls = [{"index": index, **call} for index, call in enumerate(build_ask_tool_calls(state))]
        if calls:
            yield self._encode_delta({"tool_calls": calls})
        yield from self._encode_end(self._events[-1], "tool_calls" if calls else "stop")

    def encode_failure(self, event: ev.Event) -> Iterator[str]:
        """Yields the frames that precede the error frame of a failed run."""
        yield from self.encode_break(self._status.format_headline(event))

    def encode_break(self, headline: str) -> Iterator[str]:
        """Yields the frames that close open cards and the status line, because the run failed or continues without this
        stream.
        """
        if self._rich is not None:
            yield from (json.dumps(extra, ensure_ascii=False) for extra in self._rich.close_cards())
        yield from self._encode_headline(headline)

    def _encode_known_sources(self, sources: Sequence[Source]) -> Iterator[str]:
        """Yields the sources that must precede the text that cites them: those of a checked answer, else those of the
        succeeded steps.
        """
        if sources:
            yield from self._encode_sources(sources)
        elif not self._text_sent:
            yield from self._encode_sources(list_step_sources(self._events))

    def _encode_sources(self, sources: Sequence[Source]) -> Iterator[str]:
        """Yields the sources that were not sent yet, and new quotes of those that were."""
        for source in sources:
            sent = self._quotes_sent.get(source.id)
            new = tuple(quote for quote in source.quotes if sent is None or quote not in sent)
            if sent is None or new:
                yield self._encode_progress(
                    {"type": "source", "data": build_source_event(source.model_copy(update={"quotes": new}))}
                )
            self._quotes_sent.setdefault(source.id, set()).update(source.quotes)

    def _encode_answer(self, answer: ev.AnswerFinished) -> Iterator[str]:
        yield from self._encode_sources(answer.sources)
        if not self._text_sent and answer.refused and self._rich is None:
            yield self._encode_delta({"refusal": answer.text})
        elif not self._text_sent:
            for start in range(0, len(answer.text), PIECE_CHARS):
                yield self._encode_delta({"content": answer.text[start : start + PIECE_CHARS]})
        elif (streamed := self._get_streamed_text()) != answer.text and not answer.text.startswith(streamed):
            yield from self._encode_restart()
            yield self._encode_delta({"content": answer.text})
        elif len(answer.text) > len(streamed):
            yield self._encode_delta({"content": answer.text[len(streamed) :]})
        if answer.tool_calls:
            calls = [{"index": index, **call} for index, call in enumerate(answer.tool_calls)]
            yield self._encode_delta({"tool_calls": calls})
        unstreamed_fields = {key: value for key, value in answer.provider_fields.items() if key not in _STREAMED_FIELDS}
        if unstreamed_fields:
            yield self._encode_delta(unstreamed_fields)

    def _get_streamed_text(self) -> str:
        """The text that was streamed since the answer last started."""
        parts: list[str] = []
        for event in self._events:
            if isinstance(event.body, ev.AnswerStarted):
                parts.clear()
            elif isinstance(event.body, ev.AnswerDelta) and event.body.kind != "reasoning":
                parts.append(event.body.text)
        return "".join(parts)

    def _encode_restart(self) -> Iterator[str]:
        replace = {"type": "replace", "data": {"content": ""}}
        if self._rich is not None:
            yield self._encode_progress(replace)
            yield json.dumps(EMPTY_TEXT_EVENT)
        else:  # A client that reads `event`, such as the web page, clears the text and does not show the note.
            chunk = self._build_chunk({"content": RESTARTED_NOTE}, None)
            yield json.dumps({**chunk, "event": replace}, ensure_ascii=False)

    def _encode_end(self, event: ev.Event, finish: str | None = None) -> Iterator[str]:
        """Yields the headline, the last chunk with the run's trace, and the usage if the client asked for it."""
        yield from self._encode_headline(self._status.format_headline(event))
        response = build_response(self._events)
        trace_data = response.model_dump(mode="json", include={"steps", "metadata"})
        trace = build_trace(trace_data["steps"], trace_data["metadata"], self._ignored)
        answer = next((e.body for e in reversed(self._events) if isinstance(e.body, ev.AnswerFinished)), None)
        finish = finish or (answer.finish_reason if answer else "stop")
        usage = build_usage_body(response.metadata["usage"])
        last = self._build_chunk({"metadata": trace}, finish) | build_trace_fields(trace)
        if self._rich is not None:
            last["usage"] = usage
        yield json.dumps(last, ensure_ascii=False)
        if self._include_usage:
            yield json.dumps({**self._base, "choices": [], "usage": usage}, ensure_ascii=False)

    def _encode_headline(self, line: str) -> Iterator[str]:
        if self._has_status:  # Open WebUI animates a status line until it is done.
            yield self._encode_progress({"type": "status", "data": {"description": line, "done": True}})

    def _encode_delta(self, delta: dict[str, Any]) -> str:
        return json.dumps(self._build_chunk(delta, None), ensure_ascii=False)

    def _encode_progress(self, event: dict[str, Any]) -> str:
        """A chunk with an empty delta and the extra field `event`, which strict clients ignore."""
        return json.dumps({**self._build_chunk({}, None), "event": event}, ensure_ascii=False)

    def _build_chunk(self, delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
        chunk = dict(self._base)
        chunk["choices"] = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        if self._include_usage:
            chunk["usage"] = None
        return chunk


def build_ask_tool_calls(state: RunState) -> list[JsonObject]:
    """The call of Open WebUI's `ask_user` with the approval question of a waiting run; empty if the client does
    not offer that tool or the run does not wait.
    """
    offered = [tool.get("function") for tool in state.request.client_tools]
    if (
        state.is_finished
        or not state.pending_approvals
        or not any(_get_function_name(tool) == "ask_user" for tool in offered)
    ):
        return []
    choices: list[JsonValue] = [
        {"label": "Approve", "description": "Carry it out as shown"},
        {"label": "Reject", "description": "Stop here"},
    ]
    question: JsonObject = {
        "id": "plan",
        "header": "Approval needed",
        "question": state.pending_approvals[0].reason,
        "options": choices,
    }
    arguments = {"questions": [question], "allow_other": True, "timeout_ms": ASK_TIMEOUT_MS}
    function: JsonObject = {"name": "ask_user", "arguments": json.dumps(arguments, ensure_ascii=False)}
    return [{"id": f"{ASK_PREFIX}{state.pending_approvals[0].approval_id}", "type": "function", "function": function}]


def _get_function_name(function: JsonValue) -> object:
    return function.get("name") if isinstance(function, dict) else None


def list_step_sources(events: Sequence[ev.Event]) -> tuple[Source, ...]:
    """The sources of the succeeded steps, numbered as the answer will cite them."""
    state = fold(events[0].run_id, events)
    outputs = [(step, state.get_step(step.id).output) for step in state.list_succeeded_steps() if step.is_work]
    return number_sources((step, output) for step, output in outputs if output is not None)


def build_source_event(source: Source) -> dict[str, Any]:
    """A citation in Open WebUI's form: the name on the chip, the quotes and the link.

    Open WebUI uses `metadata.source` to distinguish sources and shows it instead of the name if it is a URL, so it is
    the source's number. `name` has no URL scheme, because Open WebUI would send a URL to a search engine for its icon.
    """
    name = source.name.removeprefix("https://").removeprefix("http://") or source.name
    quotes = list(source.quotes) or [name]
    where = {"name": name} | ({"url": source.url} if source.url else {})
    return {
        "source": where,
        "document": quotes,
        "metadata": [{"source": f"source {source.id}", "name": name} for _ in quotes],
    }
