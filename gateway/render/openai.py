"""The OpenAI door's bodies: a whole completion, and the chunks of a stream with the progress riding along."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json

from agent.core import events as ev
from agent.core.fold import fold
from agent.core.models import AgentResponse, JsonObject, Source
from agent.core.response import respond
from agent.execution.outputs import number_sources
from gateway.render.openwebui import NO_TEXT, RichView
from gateway.render.status import StatusLines

PIECE_CHARS = 400
"""An answer that was not streamed is sent in pieces of this length, so that clients draw it as they do a stream."""
ASK_MS = 240_000
"""How long Open WebUI shows the question; after that any later message of the chat is taken for the answer."""
RESTARTED = "\n\n(The connection to the model broke; the answer starts again.)\n\n"


def completion_id(run_id: str) -> str:
    """The id clients see; the run's id can be read off it."""
    return f"chatcmpl-{run_id}"


def completion_body(events: Sequence[ev.Event]) -> bytes:
    """A whole `chat.completion` as JSON in UTF-8, with `steps` and `metadata` at the top and in the message."""
    response = respond(events)
    answer = next((event.body for event in reversed(events) if isinstance(event.body, ev.AnswerFinished)), None)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": response.response,
        "metadata": {"steps": response.steps, **response.metadata},
    }
    finish = answer.finish_reason if answer else "stop"
    calls = list(answer.tool_calls) if answer is not None else asked_natively(events)
    if calls:
        message["tool_calls"] = calls
        message["content"] = response.response or None
        finish = "tool_calls"
    created = events[0].body
    body = {
        "id": completion_id(events[0].run_id),
        "object": "chat.completion",
        "created": int(events[0].at),
        "model": created.room.id if isinstance(created, ev.RunCreated) else "",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": usage_body(response.metadata["usage"]),
        "steps": response.steps,
        "metadata": response.metadata,
    }
    return to_json(body)


def trace_of(response: AgentResponse) -> dict[str, Any]:
    """`steps` and `metadata` as JSON values."""
    data: dict[str, Any] = response.model_dump(mode="json", exclude={"response"})
    return data


def usage_body(usage: dict[str, Any]) -> JsonObject:
    """Token counts in OpenAI's names."""
    return {
        "prompt_tokens": usage["prompt_tokens"],
        "completion_tokens": usage["completion_tokens"],
        "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"],
    }


class OpenAIChunks:
    """The chunks of one streamed completion, event by event.

    `rich` adds what only Open WebUI understands; every other client gets plain `chat.completion.chunk`s."""

    def __init__(self, run_id: str, model: str, *, include_usage: bool, rich: bool) -> None:
        self._head: dict[str, Any] = {
            "id": completion_id(run_id),
            "object": "chat.completion.chunk",
            "created": 0,
            "model": model,
        }
        self._include_usage = include_usage
        self._rich = RichView(run_id) if rich else None
        self._status = StatusLines()
        self._events: list[ev.Event] = []
        self._told = False
        self._text_sent = False
        self._quotes_sent: dict[int, set[str]] = {}

    def frames(self, event: ev.Event) -> Iterator[str]:
        """The JSON of every frame an event is worth, in order."""
        self._events.append(event)
        if isinstance(event.body, ev.RunCreated):
            self._head["created"] = int(event.at)
            yield self._delta({"role": "assistant", "content": ""})
        line = self._status.line(event)
        if self._rich is not None:
            yield from (json.dumps(extra, ensure_ascii=False) for extra in self._rich.extras(event))
            yield from (self._rider(rider) for rider in self._rich.riders(event))
        if line is not None:
            self._told = True
            yield self._rider({"type": "status", "data": {"description": line, "done": False}})
        match event.body:
            case ev.AnswerStarted(restarted=True) if self._text_sent:
                yield from self._restart()
            case ev.AnswerDelta(kind="reasoning", text=text):
                yield self._delta({"reasoning_content": text})
            case ev.AnswerDelta(text=text, sources=sources):
                yield from self._before_text(sources)
                yield self._delta({"content": text})
                self._text_sent = True
            case ev.AnswerFinished() as answer:
                yield from self._answer(answer)
            case body if body.terminal:
                yield from self._end(event)
            case _:
                return

    def question(self) -> Iterator[str]:
        """The question a waiting run ends its turn with; by Open WebUI's own tool where that is offered."""
        yield self._delta({"content": respond(self._events).response})
        calls = [{"index": index, **call} for index, call in enumerate(asked_natively(self._events))]
        if calls:
            yield self._delta({"tool_calls": calls})
        yield from self._end(self._events[-1], "tool_calls" if calls else "stop")

    def failed(self, event: ev.Event) -> Iterator[str]:
        """What goes before the frame that tells of a failure."""
        yield from self.broken_off(self._status.headline(event))

    def broken_off(self, headline: str) -> Iterator[str]:
        """What is still open, closed: the run has failed, or goes on without this stream."""
        if self._rich is not None:
            yield from (json.dumps(extra, ensure_ascii=False) for extra in self._rich.closed())
        yield from self._headline(headline)

    def _before_text(self, sources: Sequence[Source]) -> Iterator[str]:
        """Sources go before the text that cites them: those a checked answer brings along, else those that are known
        from what the steps returned."""
        if sources:
            yield from self._sources(sources)
        elif not self._text_sent:
            yield from self._sources(known_sources(self._events))

    def _sources(self, sources: Sequence[Source]) -> Iterator[str]:
        """Sources that were not sent yet, and quotes of a known one that came later."""
        for source in sources:
            sent = self._quotes_sent.get(source.id)
            new = tuple(quote for quote in source.quotes if sent is None or quote not in sent)
            if sent is None or new:
                yield self._rider({"type": "source", "data": source_event(source.model_copy(update={"quotes": new}))})
            self._quotes_sent.setdefault(source.id, set()).update(source.quotes)

    def _answer(self, answer: ev.AnswerFinished) -> Iterator[str]:
        yield from self._sources(answer.sources)
        if not self._text_sent:
            for start in range(0, len(answer.text), PIECE_CHARS):
                yield self._delta({"content": answer.text[start : start + PIECE_CHARS]})
        elif (streamed := self._streamed()) != answer.text and not answer.text.startswith(streamed):
            yield from self._restart()
            yield self._delta({"content": answer.text})
        elif len(answer.text) > len(streamed):
            yield self._delta({"content": answer.text[len(streamed) :]})
        if answer.tool_calls:
            calls = [{"index": index, **call} for index, call in enumerate(answer.tool_calls)]
            yield self._delta({"tool_calls": calls})

    def _streamed(self) -> str:
        """The text of the newest attempt at the answer, as it was sent."""
        parts: list[str] = []
        for event in self._events:
            if isinstance(event.body, ev.AnswerStarted):
                parts.clear()
            elif isinstance(event.body, ev.AnswerDelta) and event.body.kind == "text":
                parts.append(event.body.text)
        return "".join(parts)

    def _restart(self) -> Iterator[str]:
        replace = {"type": "replace", "data": {"content": ""}}
        if self._rich is not None:
            yield self._rider(replace)
            yield json.dumps(NO_TEXT)
        else:  # a client that reads the event, as our page does, begins anew and need not show the sentence
            told = self._chunk({"content": RESTARTED}, None)
            yield json.dumps({**told, "event": replace}, ensure_ascii=False)

    def _end(self, event: ev.Event, finish: str | None = None) -> Iterator[str]:
        """The headline, the last chunk with the whole trace, and the usage where it was asked for."""
        yield from self._headline(self._status.headline(event))
        response = respond(self._events)
        shown = trace_of(response)
        answer = next((e.body for e in reversed(self._events) if isinstance(e.body, ev.AnswerFinished)), None)
        finish = finish or (answer.finish_reason if answer else "stop")
        usage = usage_body(response.metadata["usage"])
        delta: dict[str, Any] = {"metadata": {"steps": shown["steps"], **shown["metadata"]}}
        last = self._chunk(delta, finish) | shown
        if self._rich is not None:
            last["usage"] = usage
        yield json.dumps(last, ensure_ascii=False)
        if self._include_usage:
            yield json.dumps({**self._head, "choices": [], "usage": usage}, ensure_ascii=False)

    def _headline(self, line: str) -> Iterator[str]:
        if self._told:  # a status line that never ends would shimmer for ever
            yield self._rider({"type": "status", "data": {"description": line, "done": True}})

    def _delta(self, delta: dict[str, Any]) -> str:
        return json.dumps(self._chunk(delta, None), ensure_ascii=False)

    def _rider(self, event: dict[str, Any]) -> str:
        """Progress as an extra field of a chunk with an empty delta, which strict clients take for a pause."""
        return json.dumps({**self._chunk({}, None), "event": event}, ensure_ascii=False)

    def _chunk(self, delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
        chunk = dict(self._head)
        chunk["choices"] = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        if self._include_usage:
            chunk["usage"] = None
        return chunk


def asked_natively(events: Sequence[ev.Event]) -> list[JsonObject]:
    """The call of Open WebUI's `ask_user` that puts the question of a waiting run to its person; empty where the
    client does not offer that tool, or the run does not wait."""
    state = fold(events[0].run_id, events)
    offered = [tool.get("function") for tool in state.request.client_tools]
    if state.finished or not state.waiting or not any(_name(tool) == "ask_user" for tool in offered):
        return []
    choices: list[JsonValue] = [
        {"label": "Approve", "description": "Carry it out as shown"},
        {"label": "Reject", "description": "Stop here"},
    ]
    asked: JsonObject = {
        "id": "plan",
        "header": "Approval needed",
        "question": state.waiting[0].reason,
        "options": choices,
    }
    arguments = {"questions": [asked], "allow_other": True, "timeout_ms": ASK_MS}
    function: JsonObject = {"name": "ask_user", "arguments": json.dumps(arguments, ensure_ascii=False)}
    return [{"id": f"ask_{state.run_id}", "type": "function", "function": function}]


def _name(function: JsonValue) -> object:
    return function.get("name") if isinstance(function, dict) else None


def known_sources(events: Sequence[ev.Event]) -> tuple[Source, ...]:
    """The sources of the steps that succeeded, numbered as the answer will cite them."""
    state = fold(events[0].run_id, events)
    outputs = [(step, state.step(step.id).output) for step in state.succeeded_steps() if not step.is_completion]
    return number_sources((step, output) for step, output in outputs if output is not None)


def source_event(source: Source) -> dict[str, Any]:
    """A citation as Open WebUI shows it: the chip's name, the quoted words behind it, and the link.

    `metadata.source` only tells sources apart, so it is the number: one that is a URL would be shown instead of the
    name, and a name that is one would be sent to a search engine for its icon."""
    name = source.name.removeprefix("https://").removeprefix("http://") or source.name
    quotes = list(source.quotes) or [name]
    where = {"name": name} | ({"url": source.url} if source.url else {})
    return {
        "source": where,
        "document": quotes,
        "metadata": [{"source": f"source {source.id}", "name": name} for _ in quotes],
    }
