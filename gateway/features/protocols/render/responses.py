"""`ResponseProjection`: one run, or a part of it, as a `response` object of OpenAI's Responses API and its events.

A response ends where its run waits for a person: the decision starts another response of the same run. So
`resp_<run>` begins with the run, and `resp_<run>_<seq>` after the `run.waiting` event with that seq.

Sequence numbers count characters in deltas of text and frames elsewhere. They are the same while the run lasts and
after its end, when the journal has the answer as a whole instead of its pieces, so `starting_after` works for both.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from agent.core import events as ev
from agent.core.models import JsonObject, Plan, Usage
from agent.core.run_reducer import fold
from agent.policy.approval import format_approval_question
from agent.runs.response import build_response
from gateway.features.protocols.render.response_items import build_approval_request_item, format_plan_summary
from gateway.features.protocols.render.response_output import STREAMED, ResponseOutput, StepKey
from gateway.render.openai import build_trace

RESPONSE_ID: Final = re.compile(r"resp_([0-9a-f]{32})(?:_([1-9][0-9]{0,15}))?")
_CUT_SHORT: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
_ERROR_CODES: Final = (("RATE_LIMIT", "rate_limit_exceeded"), ("QUOTA", "rate_limit_exceeded"))


def make_response_id(run_id: str, start: int = 0) -> str:
    """The id of the response that begins after the event `start` of a run."""
    return f"resp_{run_id.removeprefix('run_')}" + (f"_{start}" if start else "")


def parse_response_id(text: str) -> tuple[str, int] | None:
    """The run's id and the seq after which the response begins, or None for another id."""
    match = RESPONSE_ID.fullmatch(text)
    return (f"run_{match[1]}", int(match[2] or 0)) if match else None


def cut_frames(frames: Iterable[JsonObject], after: int) -> Iterator[JsonObject]:
    """Yields what follows the sequence number `after`; of a delta that reaches beyond it, the rest."""
    for frame in frames:
        number, delta = frame["sequence_number"], frame.get("delta")
        if not isinstance(number, int) or number <= after:
            continue
        if frame["type"] in STREAMED and isinstance(delta, str) and number - len(delta) < after:
            yield {**frame, "delta": delta[after - number :]}
        else:
            yield frame


class ResponseProjection:
    """Encodes the events of a run, from its first on, as those of the response that begins after seq `start`."""

    def __init__(self, run_id: str, start: int = 0) -> None:
        self.id = make_response_id(run_id, start)
        self.is_finished = False
        self.is_waiting = False
        """Whether the run waits for a person, as far as the events go."""
        self._key = self.id.removeprefix("resp_")
        self._start = start
        self._events: list[ev.Event] = []
        self._output = ResponseOutput(self._key)
        self._arguments: dict[StepKey, str] = {}
        self._plan: Plan | None = None
        self._has_created = False
        self._taken_over: set[StepKey] = set()
        """Attempts that an earlier run made, or its client."""

    def encode_event(self, event: ev.Event) -> list[JsonObject]:
        """The frames that the event adds to the response's stream, in order."""
        if self.is_finished:
            return []
        if self.is_waiting and isinstance(event.body, ev.ApprovalDecided):
            return self.finish_waiting()
        if isinstance(event.body, ev.CancelRequested):
            self.is_waiting = False
        if self.is_waiting:  # until the decision nothing belongs to the response: it is shown as it was
            return []
        self._events.append(event)
        if isinstance(event.body, ev.StepStarted):
            self._arguments[event.step_id, event.attempt] = json.dumps(event.body.args, ensure_ascii=False)
        if isinstance(event.body, ev.PlanProposed):
            self._plan = event.body.plan
        if event.seq <= self._start:
            return []
        return [*self._create(), *self._encode_body(event)]

    def finish_waiting(self) -> list[JsonObject]:
        """The frames that end the response with the run's open question."""
        state = fold(self._events[0].run_id, self._events)
        frames = [*self._output.close_items(), *self._output.add_text(format_approval_question(state))]
        frames += self._output.close_message()
        for request in state.pending_approvals:
            frames += self._output.add_item(build_approval_request_item(self._key, request))
        return [*frames, *self._finish("response.completed")]

    def build(self) -> JsonObject:
        """The `response` object as far as the events go."""
        created = self._created
        wire = created.wire_request
        parameters = wire.get("parameters")
        body_parameters = parameters if isinstance(parameters, dict) else {}
        own = self._list_response_events()
        last = self._events[-1]
        body: JsonObject = {
            "id": self.id,
            "object": "response",
            "created_at": int(own[0].at if own else last.at),
            "model": created.request.name_room(created.room.id),
            "status": self._get_status(),
            "error": self._build_error(),
            "incomplete_details": self._build_incomplete_details(),
            "output": [*self._output.valid_items],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            **body_parameters,
            "previous_response_id": self._get_previous_id(),
            "conversation": wire.get("conversation"),
            "completed_at": int(last.at) if self.is_finished else None,
            "usage": _build_usage(own) if self.is_finished else None,
        }
        if self.is_finished:
            ignored = wire.get("ignored")
            response = build_response(self._events).model_dump(mode="json")
            names = [str(name) for name in ignored] if isinstance(ignored, list) else []
            body["stepgate"] = build_trace(response["steps"], response["metadata"], names)
        return body

    def _list_custom_tools(self) -> frozenset[str]:
        """The names of the client's tools that take a text in place of arguments."""
        parameters = self._created.wire_request.get("parameters")
        tools = parameters.get("tools") if isinstance(parameters, dict) else None
        listed = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
        return frozenset(str(tool.get("name")) for tool in listed if tool.get("type") == "custom")

    @property
    def items(self) -> list[JsonObject]:
        """The items of the output so far."""
        return self._output.items

    @property
    def _created(self) -> ev.RunCreated:
        body = self._events[0].body
        if not isinstance(body, ev.RunCreated):
            raise TypeError("a log begins with run.created")
        return body

    def _list_response_events(self) -> list[ev.Event]:
        return [event for event in self._events if event.seq > self._start]

    def _get_previous_id(self) -> JsonValue:
        """The id of the response before this one: the part of the run before the decision, or another run."""
        if not self._start:
            return self._created.wire_request.get("previous_response_id")
        return make_response_id(self._events[0].run_id, find_previous_start(self._events, self._start))

    def _get_status(self) -> str:
        if not self.is_finished:
            return "in_progress"
        match self._events[-1].body:
            case ev.RunFailed():
                return "failed"
            case ev.RunCancelled() if not self._was_rejected():
                return "cancelled"
        return "incomplete" if self._build_incomplete_details() is not None else "completed"

    def _was_rejected(self) -> bool:
        """Whether this response begins with a rejection: then the run's end is what was asked for."""
        decisions = [e.body for e in self._list_response_events() if isinstance(e.body, ev.ApprovalDecided)]
        return any(decided.decision == "rejected" for decided in decisions)

    def _build_incomplete_details(self) -> JsonObject | None:
        answer = self._answer()
        has_ended = self.is_finished and not self.is_waiting
        reason = _CUT_SHORT.get(answer.finish_reason) if answer is not None and has_ended else None
        return {"reason": reason} if reason else None

    def _build_error(self) -> JsonObject | None:
        body = self._events[-1].body
        if not isinstance(body, ev.RunFailed):
            return None
        code = body.failure.error_code
        openai_code = next((name for part, name in _ERROR_CODES if part in code), None)
        if openai_code is None:
            openai_code = "invalid_prompt" if "GUARDRAIL" in code or "CONTEXT" in code else "server_error"
        return {"code": openai_code, "message": body.failure.message}

    def _answer(self) -> ev.AnswerFinished | None:
        return next((e.body for e in reversed(self._events) if isinstance(e.body, ev.AnswerFinished)), None)

    def _create(self) -> list[JsonObject]:
        if self._has_created:
            return []
        self._has_created = True
        return [
            self._output.build_frame(f"response.{kind}", response=self.build()) for kind in ("created", "in_progress")
        ]

    def _encode_body(self, event: ev.Event) -> list[JsonObject]:  # noqa: C901, PLR0912 - one case an event
        key = (event.step_id, event.attempt)
        match event.body:
            case ev.PlanProposed(plan=plan) if any(step.is_work for step in plan.steps):
                return self._output.add_summary(format_plan_summary(event.body))
            case ev.StepStarted(taken_from=taken_from) if taken_from:  # an item of an earlier response, or its output
                self._taken_over.add(key)
            case _ if key in self._taken_over:
                return []
            case ev.StepStarted() if self._get_tool(event.step_id) is not None:
                return self._open_step(key)
            case ev.StepFinished(output=output) if self._get_tool(event.step_id) is not None:
                error = output.error if output.error_code else None
                opened = [] if self._output.has_step(key) else self._open_step(key)
                return [*opened, *self._output.close_step(key, output.text, error)]
            case ev.StepDiscarded(reason=reason):
                return self._output.close_step(key, "", f"discarded: {reason}") if self._output.has_step(key) else []
            case ev.AnswerStarted(restarted=True):
                return [*self._output.void_message(), *self._output.close_reasoning()]
            case ev.AnswerDelta(kind="reasoning", text=text):
                return self._output.add_reasoning(text)
            case ev.AnswerDelta(kind=kind, text=text):
                return self._output.add_text(text, refusal=kind == "refusal")
            case ev.AnswerFinished() as answer:
                return self._finish_answer(answer)
            case ev.RunWaiting():
                self.is_waiting = True
            case ev.RunFailed():
                return [*self._output.close_items(), *self._finish("response.failed")]
            case body if body.terminal:
                closed = self._output.close_items()
                self.is_finished = True
                done = self._get_status() == "completed"
                return [*closed, *self._finish("response.completed" if done else "response.incomplete")]
        return []

    def _finish(self, kind: str) -> list[JsonObject]:
        self.is_finished = True
        return [self._output.build_frame(kind, response=self.build())]

    def _open_step(self, key: StepKey) -> list[JsonObject]:
        return self._output.open_step(key, self._get_tool(key[0]) or "", self._arguments.get(key, "{}"))

    def _get_tool(self, step_id: str | None) -> str | None:
        """The tool or skill of a step of the plan; None for the step that writes the answer."""
        steps = self._plan.steps if self._plan else ()
        return next((step.tool for step in steps if step.id == step_id and step.is_work), None)

    def _finish_answer(self, answer: ev.AnswerFinished) -> list[JsonObject]:
        """The frames of the rest of the answer, its annotations, and the calls of the client's tools."""
        frames: list[JsonObject] = []
        thought = answer.provider_fields.get("reasoning_content") or answer.provider_fields.get("reasoning")
        whole = thought if isinstance(thought, str) else ""
        if whole and not self._output.has_message and not self._output.has_reasoning:
            frames += self._output.add_reasoning(whole)
        streamed = self._output.read_message()
        if not answer.text.startswith(streamed):
            frames += self._output.void_message()
            streamed = ""
        if answer.text or not answer.tool_calls:
            frames += self._output.add_text(answer.text[len(streamed) :], refusal=answer.refused)
        frames += self._output.close_message(
            "incomplete" if answer.finish_reason in _CUT_SHORT else "completed", answer.sources
        )
        frames += self._output.close_reasoning(whole)
        for call in answer.tool_calls:
            frames += self._output.add_call(call, is_custom=_get_name(call) in self._list_custom_tools())
        return frames


def _get_name(call: JsonObject) -> str:
    function = call.get("function")
    return str(function.get("name")) if isinstance(function, dict) else ""


def find_previous_start(events: Sequence[ev.Event], start: int) -> int:
    """The seq after which the response before the one at `start` begins: the last wait before it that a
    decision ended, or 0 for the run's first response.
    """
    decided = [event.seq for event in events if isinstance(event.body, ev.ApprovalDecided)]
    waits = [event.seq for event in events if isinstance(event.body, ev.RunWaiting) and event.seq < start]
    return max((wait for wait in waits if any(wait < seq < start for seq in decided)), default=0)


def _build_usage(events: Iterable[ev.Event]) -> JsonObject:
    """The tokens of the model calls in these events under the names of the Responses API."""
    usage = sum((e.body.usage for e in events if isinstance(e.body, ev.ModelReturned)), Usage())
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
