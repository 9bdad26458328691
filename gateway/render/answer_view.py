"""The view of an answer: HTML, steps and everything known about its run. One projection, whether the run has ended or
is followed while it is written.

A followed run is sent as frames. `view` (its id is the seq, for `Last-Event-ID`) replaces what is shown of the run;
`blocks` are the HTML of the answer so far; `thought` is a piece of what the model thinks before it; `progress` says in
a line what is being done. Blocks are made for each connection, from the beginning of the answer, and never stored.
"""

import asyncio
import contextlib
import json
import textwrap
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from time import monotonic
from typing import Any, Final

from pydantic import JsonValue

from agent.core import events as ev
from agent.core.models import JsonObject, PlanStep
from agent.core.run_reducer import fold
from agent.llm.provider_fields import iter_reasoning_texts
from agent.policy.approval import format_question
from agent.runs.response import build_response
from gateway.render.html import BlockStream, render_markdown
from gateway.render.sse import format_frame
from gateway.render.status import StatusLines

LEFT_OUT: Final = frozenset({"tool_results", "plan"})
"""Metadata that the steps show already."""
BLOCK_SECONDS: Final = 0.06
"""The least time between two renderings of a growing answer."""
MAX_BLOCK_SECONDS: Final = 0.5
"""The longest that a growing answer waits for its rendering, which takes a quarter of the time at most."""
MAX_LINE_CHARS: Final = 120
"""The longest line that says what is being done."""
THINKING: Final = "Thinking"
WRITING: Final = "Writing the answer"
_SHOWN_AT: Final = (
    ev.PlanProposed, ev.StepStarted, ev.StepJudged, ev.ApprovalRequested, ev.ApprovalDecided, ev.RunWaiting,
    ev.SubAgentStarted, ev.SubAgentFinished, ev.CancelRequested,
)  # fmt: skip
"""Events after which the view is sent again, beside the terminal one."""


def build_view(events: Sequence[ev.Event], *, html: bool = True) -> JsonObject:
    """The view of a run as far as its log goes. `html` is whether the answer is rendered; without, and while it
    is being written, there is only its text. Of a run that failed, the text is the failure, and what is rendered is
    what readers had seen of the answer when its model failed.
    """
    state = fold(events[0].run_id, events)
    response = build_response(events, state)
    metadata = {name: value for name, value in response.metadata.items() if name not in LEFT_OUT}
    is_shown = state.is_finished or bool(metadata.get("approvals"))
    text = response.response if is_shown else ""
    waiting = state.pending_approvals if not state.is_finished else ()
    shown_text = format_question(waiting, state.run_id, names_ids=False) if waiting and text else text
    if state.failure is not None:
        shown_text = next((event.body.written for event in events if isinstance(event.body, ev.RunFailed)), "")
    return {
        "run_id": state.run_id,
        "seq": events[-1].seq,
        "status": state.status,
        "replies": _list_replies(events),
        "room": state.room.id,
        "text": text,
        "thought": get_thought(state.answer) if state.answer is not None else "",
        "html": render_markdown(shown_text, state.run_id[-12:]) if html and shown_text else None,
        "steps": [step.model_dump(mode="json") for step in response.steps],
        "metadata": metadata,
    }


def _list_replies(events: Sequence[ev.Event]) -> list[JsonValue]:
    """What people replied to the questions of a run, oldest first: their words, or else the decision. One reply may
    decide on several requests of a question.
    """
    replies: list[JsonValue] = []
    latest: list[str] = []
    for event in events:
        match event.body:
            case ev.RunWaiting():
                latest = []
            case ev.ApprovalDecided(decision=decision, reason=reason) if decision != "expired":
                if (reason or decision) not in latest:
                    latest.append(reason or decision)
                    replies.append(reason or decision)
    return replies


def get_thought(answer: ev.AnswerFinished) -> str:
    """What the model thought before the answer, as far as its endpoint says; else "". Where the fields of a provider
    hold it twice, in one piece and in parts, the piece is it.
    """
    fields = answer.provider_fields
    whole = [fields[name] for name in ("reasoning_content", "reasoning") if fields.get(name)]
    return str(whole[0]) if whole else "\n\n".join(iter_reasoning_texts(fields))


class AnswerFrames:
    """The frames of one connection to one run.

    What had happened by seq `stored` is sent in one piece: who follows an answer again, after a lost connection, does
    not see it being written once more."""

    def __init__(self, run_id: str, after: int, stored: int = 0) -> None:
        self._events: list[ev.Event] = []
        self._after = after
        self._stored = stored
        self._blocks = BlockStream(run_id[-12:])
        self._lines = StatusLines()
        self._line: str | None = None
        """What is being done, if it was not sent yet."""
        self._thoughts: list[str] = []
        """Pieces of the thought that were not sent yet."""
        self._is_restarted = False
        self._is_dirty = False
        self._is_thinking = False
        self._is_view_due = False
        self._rendered_at = 0.0
        self._cost = 0.0

    async def stream(self, events: AsyncGenerator[ev.Event, None]) -> AsyncGenerator[str, None]:
        """Yields the frames of a followed run. `events` are all of it, from the first one."""
        await asyncio.to_thread(render_markdown, "")  # loads the parser before the first words come
        async for event in _read_with_pauses(events, BLOCK_SECONDS):
            if event is not None:
                self._read(event)
                if event.seq < self._stored:
                    continue
            async for frame in self._make_frames(renders=event is None):
                yield frame

    def _read(self, event: ev.Event) -> None:
        """Notes what an event changes."""
        self._events.append(event)
        body = event.body
        if isinstance(body, ev.AnswerDelta):
            return self._read_delta(body)
        if isinstance(body, ev.AnswerStarted):
            self._blocks = BlockStream(event.run_id[-12:])
            self._is_restarted, self._is_dirty = True, False
            self._thoughts.clear()
        self._line = self._describe(event) or self._line
        if event.seq > self._after and (body.terminal or isinstance(body, _SHOWN_AT)):
            self._is_view_due = True
        return None

    def _read_delta(self, delta: ev.AnswerDelta) -> None:
        is_thought = delta.kind == "reasoning"
        if is_thought != self._is_thinking:
            self._is_thinking = is_thought
            self._line = THINKING if is_thought else WRITING
        if is_thought:
            self._thoughts.append(delta.text)
        elif delta.kind == "text":
            self._blocks.feed(delta.text)
            self._is_dirty = True

    async def _make_frames(self, *, renders: bool) -> AsyncGenerator[str, None]:
        """Yields what was not sent yet. An answer that grows is rendered now and then, and if it `renders` at once."""
        renders = self._is_dirty and (renders or self._is_view_due or self._is_render_due())
        if self._is_restarted or renders:
            yield await self._render_blocks()
        if self._line is not None:
            line, self._line = self._line, None
            yield _format("progress", {"text": line})
        if self._thoughts:
            yield _format("thought", {"text": self._take_thought()})
        if self._is_view_due:
            self._is_view_due = False
            view = await asyncio.to_thread(build_view, list(self._events))
            yield _format("view", view, self._events[-1].seq)

    def _is_render_due(self) -> bool:
        return monotonic() - self._rendered_at > max(BLOCK_SECONDS, min(4 * self._cost, MAX_BLOCK_SECONDS))

    def _take_thought(self) -> str:
        thought = "".join(self._thoughts)
        self._thoughts.clear()
        return thought

    async def _render_blocks(self) -> str:
        is_restarted, self._is_restarted, self._is_dirty = self._is_restarted, False, False
        started = monotonic()
        blocks = await asyncio.to_thread(lambda: list(self._blocks.render()))
        if blocks:
            self._rendered_at = monotonic()
            self._cost = self._rendered_at - started
        made = [
            {
                "index": block.index, "html": block.html, "text": block.text, "appends": block.appends,
                "finished": block.finished,
            }
            for block in blocks
        ]  # fmt: skip
        begin = {"thought": self._take_thought()} if is_restarted else {}
        return _format("blocks", {"restart": is_restarted, **begin, "blocks": made})

    def _describe(self, event: ev.Event) -> str | None:
        """What is being done now, in words of the task: the request's, or those of the step."""
        body = event.body
        line = self._lines.format_event(event)
        if isinstance(body, ev.RequestUnderstood) and body.route == "plan":
            return _shorten(f"Planning: {body.question}")
        if isinstance(body, ev.PlanProposed):
            work = [step for step in body.plan.steps if step.is_work]
            return f"Planned: {'; '.join(describe_step(step) for step in work[:3])}" if work else line
        if isinstance(body, ev.StepStarted):
            plan_step = self._lines.find_step(event.step_id)
            if plan_step is not None:
                return describe_step(plan_step[1])
        if isinstance(body, ev.ToolCalled):
            return None
        if isinstance(body, ev.AnswerStarted):
            return WRITING
        return line


def describe_step(step: PlanStep) -> str:
    """What a step does: its intent; without one, its tool with the first text that it is given."""
    if step.is_completion:
        return WRITING
    given = [value for value in step.args.values() if isinstance(value, str) and value.strip()]
    return _shorten(step.intent or ": ".join([step.title.replace("_", " "), *given[:1]]))


def _shorten(text: str) -> str:
    return textwrap.shorten(text, MAX_LINE_CHARS, placeholder=" …")


async def _read_with_pauses(events: AsyncGenerator[ev.Event, None], pause_s: float) -> AsyncIterator[ev.Event | None]:
    """Yields the events, and None whenever none came for a while after one."""
    following: asyncio.Future[ev.Event | None] = asyncio.ensure_future(_next(events))
    idle = False
    try:
        while True:
            done, _ = await asyncio.wait([following], timeout=None if idle else pause_s)
            if not done:
                idle = True
                yield None
                continue
            event = following.result()
            if event is None:
                return
            idle = False
            yield event
            following = asyncio.ensure_future(_next(events))
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await following
        await events.aclose()


async def _next(events: AsyncGenerator[ev.Event, None]) -> ev.Event | None:
    return await anext(events, None)


def _format(name: str, data: dict[str, Any], seq: int | None = None) -> str:
    return format_frame(json.dumps(data, ensure_ascii=False), event=name, event_id=seq)
