"""`ResponseProjection`: one run, or a part of it, as a `response` object of OpenAI's Responses API and its events.

A response ends where its run waits for a person: the decision starts another response of the same run. So
`resp_<run>` begins with the run, and `resp_<run>_<seq>` after the `run.waiting` event with that seq.

Sequence numbers count characters in deltas of text and frames elsewhere. They are the same while the run lasts and
after its end, when the journal has the answer as a whole instead of its pieces, so `starting_after` works for both.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pydantic import JsonValue

from agent.core import events as ev
from agent.core.models import JsonObject, Plan, Source, Usage
from agent.core.run_state import fold
from agent.core.trace import shorten
from agent.policy.approval import format_approval_question
from agent.runs.response import build_response
from gateway.render.openai import build_trace
from gateway.render.response_items import (
    SERVER_LABEL,
    annotate,
    approval_request_item,
    function_call_item,
    plan_summary,
)

RESPONSE_ID: Final = re.compile(r"resp_([0-9a-f]{32})(?:_([1-9][0-9]{0,15}))?")
MAX_OUTPUT_CHARS: Final = 20_000
"""Longest output of a step within a response; the trace has all of it."""
REASONING_NUMBERS: Final = 1_000_000
"""Sequence numbers that are kept free for the deltas of one reasoning item."""
_CUT_SHORT: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
_ERROR_CODES: Final = (("RATE_LIMIT", "rate_limit_exceeded"), ("QUOTA", "rate_limit_exceeded"))
_STREAMED: Final = frozenset({"response.output_text.delta", "response.refusal.delta", "response.reasoning_text.delta"})
"""Events whose number advances by characters, because the journal does not keep where the pieces began."""
_STEP_KEY = tuple[str | None, int | None]


def response_id(run_id: str, start: int = 0) -> str:
    """Returns the id of the response that begins after the event `start` of a run."""
    return f"resp_{run_id.removeprefix('run_')}" + (f"_{start}" if start else "")


def parse_response_id(text: str) -> tuple[str, int] | None:
    """Returns the run's id and the seq after which the response begins, or None for another id."""
    found = RESPONSE_ID.fullmatch(text)
    return (f"run_{found[1]}", int(found[2] or 0)) if found else None


def cut_frames(frames: Iterable[JsonObject], after: int) -> Iterator[JsonObject]:
    """Yields what follows the sequence number `after`; of a delta that reaches beyond it, the rest."""
    for frame in frames:
        number, delta = frame["sequence_number"], frame.get("delta")
        if not isinstance(number, int) or number <= after:
            continue
        if frame["type"] in _STREAMED and isinstance(delta, str) and number - len(delta) < after:
            yield {**frame, "delta": delta[after - number :]}
        else:
            yield frame


class ResponseProjection:
    """Encodes the events of a run, from its first on, as those of the response that begins after seq `start`."""

    def __init__(self, run_id: str, start: int = 0) -> None:
        self.id = response_id(run_id, start)
        self.is_finished = False
        self.is_waiting = False
        """Whether the run waits for a person, as far as the events go."""
        self._key = self.id.removeprefix("resp_")
        self._start = start
        self._events: list[ev.Event] = []
        self._number = 0
        self._output: list[JsonObject] = []
        self._steps: dict[_STEP_KEY, int] = {}
        self._arguments: dict[_STEP_KEY, str] = {}
        self._plan: Plan | None = None
        self._message: int | None = None
        self._reasoning: int | None = None
        self._thought_number = 0
        self._has_created = False

    def encode_event(self, event: ev.Event) -> list[JsonObject]:
        """Returns the frames that the event adds to the response's stream, in order."""
        if self.is_finished:
            return []
        if self.is_waiting and isinstance(event.body, ev.ApprovalDecided):
            return self.finish_waiting()
        if isinstance(event.body, ev.CancelRequested):
            self.is_waiting = False
        self._events.append(event)
        if isinstance(event.body, ev.StepStarted):
            self._arguments[event.step_id, event.attempt] = json.dumps(event.body.args, ensure_ascii=False)
        if isinstance(event.body, ev.PlanProposed):
            self._plan = event.body.plan
        if event.seq <= self._start:
            return []
        return [*self._create(), *self._encode_body(event)]

    def finish_waiting(self) -> list[JsonObject]:
        """Returns the frames that end the response with the run's open question."""
        state = fold(self._events[0].run_id, self._events)
        frames = [*self._close_items("incomplete"), *self._add_text(format_approval_question(state))]
        frames += self._close_message()
        for asked in state.pending_approvals:
            frames += self._add_item(approval_request_item(self._key, asked))
        return [*frames, *self._finish("response.completed")]

    def build(self) -> JsonObject:
        """Returns the `response` object as far as the events go."""
        created = self._created
        wire = created.wire_request
        parameters = wire.get("parameters")
        shown = parameters if isinstance(parameters, dict) else {}
        own = self._events_of_response()
        last = self._events[-1]
        body: JsonObject = {
            "id": self.id,
            "object": "response",
            "created_at": int(own[0].at if own else last.at),
            "model": created.room.id,
            "status": self._status(),
            "error": self._error(),
            "incomplete_details": self._incomplete_details(),
            "output": [*self._output],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            **shown,
            "previous_response_id": self._previous_id(),
            "conversation": wire.get("conversation"),
            "completed_at": int(last.at) if self.is_finished else None,
            "usage": _usage_body(own) if self.is_finished else None,
        }
        if self.is_finished:
            ignored = wire.get("ignored")
            response = build_response(self._events).model_dump(mode="json")
            names = [str(name) for name in ignored] if isinstance(ignored, list) else []
            body["stepgate"] = build_trace(response["steps"], response["metadata"], names)
        return body

    @property
    def _created(self) -> ev.RunCreated:
        body = self._events[0].body
        if not isinstance(body, ev.RunCreated):
            raise TypeError("a log begins with run.created")
        return body

    def _events_of_response(self) -> list[ev.Event]:
        return [event for event in self._events if event.seq > self._start]

    def _previous_id(self) -> JsonValue:
        """Returns the id of the response before this one: the part of the run before the decision, or another run."""
        if not self._start:
            return self._created.wire_request.get("previous_response_id")
        return response_id(self._events[0].run_id, find_previous_start(self._events, self._start))

    def _status(self) -> str:
        if not self.is_finished:
            return "in_progress"
        match self._events[-1].body:
            case ev.RunFailed():
                return "failed"
            case ev.RunCancelled() if not self._was_rejected():
                return "cancelled"
        return "incomplete" if self._incomplete_details() is not None else "completed"

    def _was_rejected(self) -> bool:
        """Returns whether this response begins with a rejection: then the run's end is what was asked for."""
        decisions = [e.body for e in self._events_of_response() if isinstance(e.body, ev.ApprovalDecided)]
        return any(decided.decision == "rejected" for decided in decisions)

    def _incomplete_details(self) -> JsonObject | None:
        answer = self._answer()
        reason = _CUT_SHORT.get(answer.finish_reason) if answer is not None and self.is_finished else None
        return {"reason": reason} if reason else None

    def _error(self) -> JsonObject | None:
        body = self._events[-1].body
        if not isinstance(body, ev.RunFailed):
            return None
        code = body.failure.error_code
        known = next((name for part, name in _ERROR_CODES if part in code), None)
        if known is None:
            known = "invalid_prompt" if "GUARDRAIL" in code or "CONTEXT" in code else "server_error"
        return {"code": known, "message": body.failure.message}

    def _answer(self) -> ev.AnswerFinished | None:
        return next((e.body for e in reversed(self._events) if isinstance(e.body, ev.AnswerFinished)), None)

    def _create(self) -> list[JsonObject]:
        if self._has_created:
            return []
        self._has_created = True
        return [self._frame(f"response.{kind}", response=self.build()) for kind in ("created", "in_progress")]

    def _encode_body(self, event: ev.Event) -> list[JsonObject]:  # noqa: C901 - one case an event
        key = (event.step_id, event.attempt)
        match event.body:
            case ev.PlanProposed(plan=plan) if any(not step.is_completion for step in plan.steps):
                return self._add_summary(plan_summary(event.body))
            case ev.StepStarted() if self._tool_of(event.step_id) is not None:
                return self._open_step(key)
            case ev.StepFinished(output=output) if self._tool_of(event.step_id) is not None:
                error = output.error if output.error_code else None
                opened = [] if key in self._steps else self._open_step(key)
                return [*opened, *self._close_step(key, output.text, error)]
            case ev.StepDiscarded(reason=reason):
                return self._close_step(key, "", f"discarded: {reason}") if key in self._steps else []
            case ev.AnswerStarted(restarted=True):
                return [*self._close_message("incomplete"), *self._close_reasoning()]
            case ev.AnswerDelta(kind="reasoning", text=text):
                return self._add_reasoning(text)
            case ev.AnswerDelta(kind=kind, text=text):
                return self._add_text(text, refusal=kind == "refusal")
            case ev.AnswerFinished() as answer:
                return self._finish_answer(answer)
            case ev.RunWaiting():
                self.is_waiting = True
            case ev.RunFailed():
                return [*self._close_items("incomplete"), *self._finish("response.failed")]
            case body if body.terminal:
                closed = self._close_items("incomplete")
                self.is_finished = True
                done = self._status() == "completed"
                return [*closed, *self._finish("response.completed" if done else "response.incomplete")]
        return []

    def _finish(self, kind: str) -> list[JsonObject]:
        self.is_finished = True
        return [self._frame(kind, response=self.build())]

    def _tool_of(self, step_id: str | None) -> str | None:
        """Returns the tool or skill of a step of the plan; None for the step that writes the answer."""
        steps = self._plan.steps if self._plan else ()
        return next((step.tool for step in steps if step.id == step_id and not step.is_completion), None)

    def _open_step(self, key: _STEP_KEY) -> list[JsonObject]:
        if key in self._steps:  # a resumed run repeats the start of an attempt
            return []
        item: JsonObject = {
            "id": f"mcp_{self._key}_{len(self._output)}",
            "type": "mcp_call",
            "server_label": SERVER_LABEL,
            "name": self._tool_of(key[0]) or "",
            "arguments": "",
            "status": "in_progress",
        }
        self._steps[key] = len(self._output)
        frames = self._open_item(item)
        where = self._place(self._steps[key])
        arguments = self._arguments.get(key, "{}")
        item["arguments"] = arguments
        return [
            *frames,
            self._frame("response.mcp_call.in_progress", **where),
            self._frame("response.mcp_call_arguments.delta", **where, delta=arguments),
            self._frame("response.mcp_call_arguments.done", **where, arguments=arguments),
        ]

    def _close_step(self, key: _STEP_KEY, text: str, error: str | None) -> list[JsonObject]:
        index = self._steps[key]
        item = self._output[index]
        if item["status"] != "in_progress":
            return []
        item |= {"output": None, "error": error, "status": "failed"} if error is not None else {
            "output": shorten(text, MAX_OUTPUT_CHARS), "error": None, "status": "completed",
        }  # fmt: skip
        kind = "failed" if error is not None else "completed"
        return [self._frame(f"response.mcp_call.{kind}", **self._place(index)), *self._item_done(index)]

    def _close_items(self, status: str) -> list[JsonObject]:
        """Returns the frames that end what is open, because the run ends or waits."""
        frames = [*self._close_message(status), *self._close_reasoning()]
        for index in self._steps.values():
            if self._output[index]["status"] == "in_progress":
                self._output[index]["status"] = status
                frames += self._item_done(index)
        return frames

    def _add_summary(self, text: str) -> list[JsonObject]:
        index = len(self._output)
        part: JsonObject = {"type": "summary_text", "text": text}
        item: JsonObject = {
            "id": f"rs_{self._key}_{index}",
            "type": "reasoning",
            "summary": [],
            "status": "in_progress",
        }
        frames = self._open_item(item)
        item |= {"summary": [part], "status": "completed"}
        where = {**self._place(index), "summary_index": 0}
        return [
            *frames,
            self._frame("response.reasoning_summary_part.added", **where, part={**part, "text": ""}),
            self._frame("response.reasoning_summary_text.delta", **where, delta=text),
            self._frame("response.reasoning_summary_text.done", **where, text=text),
            self._frame("response.reasoning_summary_part.done", **where, part=part),
            *self._item_done(index),
        ]

    def _add_reasoning(self, text: str) -> list[JsonObject]:
        """Returns the frames of what the model that answers has thought, as its provider shows it.

        Its last piece may come after the answer has begun, since secrets are looked for across pieces. Only the end of
        the item has that piece. The deltas have a block of numbers of their own.
        """
        frames: list[JsonObject] = []
        if self._reasoning is None:
            if self._message is not None:
                return []
            self._reasoning = len(self._output)
            item_id = f"rs_{self._key}_{self._reasoning}"
            part: JsonObject = {"type": "reasoning_text", "text": ""}
            frames = self._open_item(
                {"id": item_id, "type": "reasoning", "summary": [], "content": [], "status": "in_progress"}
            )
            self._output[self._reasoning]["content"] = [part]
            self._thought_number = self._number
            self._number += REASONING_NUMBERS
        thought = _first_part(self._output[self._reasoning])
        thought["text"] += text
        if text and self._message is None and len(thought["text"]) <= REASONING_NUMBERS:
            number = self._thought_number + len(thought["text"]) - 1
            where = {**self._place(self._reasoning), "content_index": 0}
            frame: JsonObject = {"type": "response.reasoning_text.delta", "sequence_number": number, **where}
            frames.append({**frame, "delta": text})
        return frames

    def _close_reasoning(self, whole: str = "") -> list[JsonObject]:
        if self._reasoning is None:
            return []
        index, self._reasoning = self._reasoning, None
        item, part = self._output[index], _first_part(self._output[index])
        item["status"] = "completed"
        part["text"] = whole or part["text"]
        where = {**self._place(index), "content_index": 0}
        return [self._frame("response.reasoning_text.done", **where, text=part["text"]), *self._item_done(index)]

    def _add_text(self, text: str, *, refusal: bool = False) -> list[JsonObject]:
        kind, field = ("refusal", "refusal") if refusal else ("output_text", "text")
        frames: list[JsonObject] = []
        if self._message is None:
            self._message = len(self._output)
            item: JsonObject = {
                "id": f"msg_{self._key}_{self._message}",
                "type": "message",
                "role": "assistant",
                "status": "in_progress",
                "content": [],
            }
            frames = self._open_item(item)
            part: JsonObject = {"type": kind, field: ""}
            if not refusal:
                part |= {"annotations": [], "logprobs": []}
            item["content"] = [part]
            where = {**self._place(self._message), "content_index": 0}
            frames.append(self._frame("response.content_part.added", **where, part={**part}))
        if text:
            _first_part(self._output[self._message])[field] += text
            where = {**self._place(self._message), "content_index": 0}
            extra: JsonObject = {} if refusal else {"logprobs": []}
            frames.append(self._frame(f"response.{kind}.delta", **where, delta=text, **extra))
        return frames

    def _finish_answer(self, answer: ev.AnswerFinished) -> list[JsonObject]:
        """Returns the frames of the rest of the answer, its annotations, and the calls of the client's tools."""
        frames: list[JsonObject] = []
        thought = answer.provider_fields.get("reasoning_content") or answer.provider_fields.get("reasoning")
        whole = thought if isinstance(thought, str) else ""
        if whole and self._message is None and self._reasoning is None:
            frames += self._add_reasoning(whole)
        field = "refusal" if answer.refused else "text"
        streamed = _first_part(self._output[self._message]).get(field) if self._message is not None else ""
        if not isinstance(streamed, str) or not answer.text.startswith(streamed):
            frames += self._close_message("incomplete")  # what was streamed is void
            streamed = ""
        if answer.text or not answer.tool_calls:
            frames += self._add_text(answer.text[len(streamed) :], refusal=answer.refused)
        frames += self._close_message(
            "incomplete" if answer.finish_reason in _CUT_SHORT else "completed", answer.sources
        )
        frames += self._close_reasoning(whole)
        for call in answer.tool_calls:
            frames += self._add_call(call)
        return frames

    def _close_message(self, status: str = "completed", sources: Sequence[Source] = ()) -> list[JsonObject]:
        if self._message is None:
            return []
        index, self._message = self._message, None
        item, part = self._output[index], _first_part(self._output[index])
        where = {**self._place(index), "content_index": 0}
        item["status"] = status
        if part["type"] == "refusal":
            frames = [self._frame("response.refusal.done", **where, refusal=part["refusal"])]
        else:
            notes = annotate(str(part["text"]), sources)
            frames = [
                self._frame("response.output_text.annotation.added", **where, annotation_index=number, annotation=note)
                for number, note in enumerate(notes)
            ]
            part["annotations"] = [*notes]
            frames.append(self._frame("response.output_text.done", **where, text=part["text"], logprobs=[]))
        return [*frames, self._frame("response.content_part.done", **where, part={**part}), *self._item_done(index)]

    def _add_call(self, call: JsonObject) -> list[JsonObject]:
        """Returns the frames of a call of one of the client's own tools."""
        index = len(self._output)
        item = function_call_item(f"fc_{self._key}_{index}", call)
        frames = self._open_item({**item, "arguments": "", "status": "in_progress"})
        self._output[index] = item
        where = self._place(index)
        done = {"arguments": item["arguments"], "name": item["name"]}
        return [
            *frames,
            self._frame("response.function_call_arguments.delta", **where, delta=item["arguments"]),
            self._frame("response.function_call_arguments.done", **where, **done),
            *self._item_done(index),
        ]

    def _add_item(self, item: JsonObject) -> list[JsonObject]:
        frames = self._open_item(item)
        return [*frames, *self._item_done(len(self._output) - 1)]

    def _open_item(self, item: JsonObject) -> list[JsonObject]:
        self._output.append(item)
        return [self._frame("response.output_item.added", output_index=len(self._output) - 1, item={**item})]

    def _item_done(self, index: int) -> list[JsonObject]:
        return [self._frame("response.output_item.done", output_index=index, item={**self._output[index]})]

    def _place(self, index: int) -> dict[str, Any]:
        return {"item_id": self._output[index]["id"], "output_index": index}

    def _frame(self, kind: str, **fields: Any) -> JsonObject:
        """Returns a frame with its number: that of its last character, or the next one."""
        self._number += len(fields["delta"]) if kind in _STREAMED else 1
        return {"type": kind, "sequence_number": self._number - 1, **fields}


def _first_part(item: JsonObject) -> dict[str, Any]:
    content = item["content"]
    if not isinstance(content, list) or not isinstance(content[0], dict):
        raise TypeError("an open item has one part")
    return content[0]


def find_previous_start(events: Sequence[ev.Event], start: int) -> int:
    """Returns the seq after which the response before the one at `start` begins: the last wait before it that a
    decision ended, or 0 for the run's first response.
    """
    decided = [event.seq for event in events if isinstance(event.body, ev.ApprovalDecided)]
    waits = [event.seq for event in events if isinstance(event.body, ev.RunWaiting) and event.seq < start]
    return max((wait for wait in waits if any(wait < seq < start for seq in decided)), default=0)


def _usage_body(events: Iterable[ev.Event]) -> JsonObject:
    """Returns the tokens of the model calls in these events under the names of the Responses API."""
    usage = sum((e.body.usage for e in events if isinstance(e.body, ev.ModelReturned)), Usage())
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total_tokens,
    }
