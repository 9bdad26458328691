"""`RunRedaction`: applies the redaction policy (`agent.policy.redaction`) to everything that leaves one run."""

import asyncio
import json
import secrets
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from pydantic import JsonValue

from agent.core.errors import NotFoundError, UnsafeAnswerError
from agent.core.event_loop import compute_beside_loop
from agent.core.events import (
    AnswerFinished,
    AssistantTurn,
    EventBody,
    EventDraft,
    OutputGuarded,
    StepFinished,
    StepOutput,
)
from agent.core.models import JsonObject, PlanStep, Source
from agent.core.plan_outcome import is_answer_step
from agent.llm.call_forms import read_calls
from agent.llm.port import ModelReply
from agent.policy.guardrails.run_links import clean_question, iter_stored_results
from agent.policy.redaction.answers import (
    AnswerFilters,
    CheckedAnswer,
    check_answer,
    release_answer,
)
from agent.policy.redaction.events import EventRedactor, ResultParts, holds_text, read_arguments
from agent.policy.redaction.inbound import redact_for_model, redact_reply

if TYPE_CHECKING:
    from agent.run_context.run import Run

Body = TypeVar("Body", bound=EventBody)
Result = TypeVar("Result")


class RunRedaction:
    """Redacts the events of one run for its log, its answer for people, and its model calls for the model.

    Every event passes `redact_body` when `Run.emit` or `Run.note` appends it. Some texts are used before that, such as
    a step's output: `redact`, `finish_step` and `release_answer` redact their events early, and `mark_redacted`
    remembers an event until it is appended, so that no text is scanned twice. `MeteredModels` passes each request
    through `redact_for_model`, and each reply through `redact_reply`.
    """

    def __init__(self, run: "Run") -> None:
        weak_run: Run = weakref.proxy(run)
        self._run = weak_run
        """Weak, since the run holds this object: a cycle would keep every ended run, log and all, until the garbage
        collector finds it, which stops the event loop for as long as it searches."""
        self.secrets = (*run.engine.secrets, *run.engine.models.keys)
        """The secrets of the settings and the keys of the models."""
        self._stored_texts: dict[str, str] = {}
        """The whole texts of results that the log only begins, by the ids of their blobs."""
        self._events = EventRedactor(lambda: weak_run.state, self.secrets, self._stored_texts)
        self._redacted: dict[int, EventBody] = {}
        """Redacted events that are not yet appended, by identity."""

    # Redaction of events, which every door reads.

    def redact_body(self, body: EventBody, step_id: str | None) -> EventBody:
        """An event that holds text, redacted for the log; one that was redacted early is returned as it is."""
        if self._redacted.pop(id(body), None) is body:
            return body
        return self._events.redact(body, by_model=self._is_by_model(body, step_id))

    def redact(self, body: Body) -> Body:
        """Redacts an event early, because its text is used before it is appended, and marks it."""
        redacted = self._events.redact(body)
        assert isinstance(redacted, type(body)), "a rule returns the type it is given"
        return self.mark_redacted(redacted)

    def mark_redacted(self, body: Body) -> Body:
        """Marks an event as redacted and returns it."""
        if holds_text(body):
            self._redacted[id(body)] = body
        return body

    def note_stored_text(self, blob: str, text: str) -> None:
        """Notes the whole text of a result whose beginning alone goes into the log: links are compared with it."""
        self._stored_texts[blob] = text

    async def load_stored_texts(self) -> None:
        """Loads such texts of results that another process, or another run, has stored. Raises `StoreError`.

        A text that was deleted meanwhile stays missing.
        """
        for result in iter_stored_results(self._run.state):
            if result.blob is not None and result.blob not in self._stored_texts:
                with suppress(NotFoundError):
                    self._stored_texts[result.blob] = json.loads(await self._run.journal.get_blob(result.blob))["text"]

    async def redact_result(
        self, text: str, value: JsonValue, sources: tuple[Source, ...], encoded: str | None = None
    ) -> ResultParts:
        """A tool's result, redacted for the run and the log. `encoded` is the value as JSON, if it is known."""
        parts = ResultParts(text, value, sources)
        if not self._events.may_hold_secret(parts, encoded):
            return parts
        return await asyncio.to_thread(self._events.redact_result, parts)

    async def store_whole(self, parts: ResultParts, clean: ResultParts, *, by_model: bool = False) -> str | None:
        """Stores a result whose personal data was removed in `clean`, without secrets. Returns the id of its blob; None
        if it lost nothing else.
        """
        if clean.text == parts.text and clean.value == parts.value:
            return None
        whole = await asyncio.to_thread(self._events.redact_secrets, parts, by_model=by_model)
        if (whole.text, whole.value) == (clean.text, clean.value):
            return None
        # The id stands in the log and is a checksum of the content: without a salt, it could be guessed from it.
        payload = {"value": whole.value, "text": whole.text, "salt": secrets.token_hex(16)}
        data = json.dumps(payload, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
        return await self._run.journal.put_blob(data, run_id=self._run.run_id)

    async def redact_content_blocks(self, blocks: Sequence[JsonObject]) -> list[JsonObject]:
        """A tool's content blocks, redacted."""
        return await asyncio.to_thread(self._events.redact_content_blocks, blocks)

    def redact_text(self, text: str) -> str:
        """A short text of a tool, such as a line of progress, redacted."""
        return self._events.redact_text(text)

    def redact_error(self, message: str) -> str:
        """An error message without secrets."""
        return self._events.redact_error_message(message)

    async def finish_step(
        self, step: PlanStep, attempt: int, output: StepOutput, duration: float
    ) -> tuple[list[EventDraft], StepFinished]:
        """The end of an attempt, and the events with the findings of the room's policy.

        If the room blocks the answer, the attempt ends as unsafe, and a retry gets a stricter instruction."""
        by_model = step.action in ("completion", "skill") or output.effective == "llm"
        whole = self._run.room.guard_output.requires_whole_answer and step.action in ("completion", "skill")
        if not whole or output.error is not None or not is_answer_step(self._run.state, step):
            body = StepFinished(output=output, duration=duration)
            finished = await self._compute(lambda: self._events.redact(body, by_model=by_model))
            assert isinstance(finished, StepFinished)
            if by_model and output.error is None and not is_answer_step(self._run.state, step):
                finished = await self._keep_whole(finished, output)
            return [], self.mark_redacted(finished)
        checked = [await self.check_answer(output.text)]
        if arguments := "\n".join(_iter_argument_texts(output)):
            checked.append(await self.check_answer(arguments))
        events = [one.event for one in checked if one.event is not None]
        refused = next((event for event in events if event.failure is not None), None)
        if refused is not None:
            strict = refused.model_copy(update={"action": "retry_strict"}) if attempt == 1 else refused
            unsafe = StepFinished(output=_build_unsafe_output(refused, output), duration=duration)
            return [EventDraft(strict, step.id, attempt)], self.mark_redacted(unsafe)
        visible_output = self._events.replace_output_text(output, checked[0].text)
        drafts = [EventDraft(event, step.id, attempt) for event in events]
        return drafts, self.mark_redacted(StepFinished(output=visible_output, duration=duration))

    async def _keep_whole(self, finished: StepFinished, output: StepOutput) -> StepFinished:
        """The end of a step whose text later steps may work with, with the blob of the text as it was."""
        visible_output = finished.output
        if not isinstance(output.value, str | None):  # an answer with calls of the client's tools: nothing reads it
            return finished
        before, after = (
            ResultParts(output.text, output.value, ()),
            ResultParts(visible_output.text, visible_output.value, ()),
        )
        blob = await self.store_whole(before, after, by_model=True)
        if blob is None:
            return finished
        return finished.model_copy(update={"output": visible_output.model_copy(update={"whole_blob": blob})})

    async def redact_turn(self, turn: AssistantTurn, tools: Sequence[JsonObject]) -> AssistantTurn | None:
        """A model's turn, redacted for the log. `tools` are the tools of the call.

        Returns None if the turn has no calls and the log may not hold its text as it is: after a crash the model is
        called again. A tool call written as text stays unchanged, because the run resumes with these arguments from the
        log."""
        fields = self._events.redact_provider_fields(turn.provider_fields)
        turn = turn.model_copy(update={"provider_fields": fields})
        if not turn.text or (not turn.tool_calls and _is_tool_call_text(turn.text, tools)):
            return turn
        if not self._run.room.guard_output.requires_whole_answer:
            visible_text = await self._compute(lambda: self._events.redact_answer_text(turn.text))
            lost = visible_text != turn.text and not turn.tool_calls
            return None if lost else turn.model_copy(update={"text": visible_text})
        answer = await self.check_answer(turn.text)
        if answer.failure is None:
            return turn.model_copy(update={"text": answer.text})
        # The run needs the calls to resume, even if their text is blocked.
        return turn.model_copy(update={"text": ""}) if turn.tool_calls else None

    async def check_answer(self, text: str) -> CheckedAnswer:
        """Applies the room's policy to a whole answer. Keeps its placeholders."""
        return await check_answer(text, self._run.state, self.secrets, is_redacted=text == self._events.clean_text)

    async def release_answer(self, answer: AnswerFinished, text: str) -> AnswerFinished:
        """The answer for people. `text` is its text after the room's policy."""
        state, texts = self._run.state, self._stored_texts
        return self.mark_redacted(await self._compute(lambda: release_answer(answer, text, state, self.secrets, texts)))

    def clean_question(self, text: str) -> str:
        """A model's question to the user, in which nothing loads by itself and no link carries what was read."""
        return clean_question(text, self._run.state, self._stored_texts)

    def note_streamed_text(self, text: str, shown: str) -> None:
        """Notes a streamed text and what its filters made of it, so that it is not searched again if they found
        nothing. A long text is: the filters may have cut it within a word.
        """
        from agent.policy.guardrails.stream import MAX_HELD_CHARS  # noqa: PLC0415 - loaded with the first request

        if text == shown and len(text) <= MAX_HELD_CHARS:
            self._events.clean_text = text

    def make_stream_filters(self) -> AnswerFilters:
        """The factory of the filters for a streamed answer."""
        return AnswerFilters(self._run.state, self.secrets, self._stored_texts)

    # Redaction of model calls and replies.

    async def redact_for_model(self, items: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
        """Messages or tools, redacted for a model."""
        if not items:
            return items
        state = self._run.state
        contents = [content for item in items if isinstance(content := item.get("content"), str)]
        chars = sum(map(len, (state.request.prompt, *contents)))  # a long prompt may have thousands of placeholders
        return await compute_beside_loop(chars, lambda: redact_for_model(items, state, self.secrets))

    def redact_reply(self, reply: ModelReply) -> ModelReply:
        """A model's reply without this gateway's secrets."""
        return redact_reply(reply, self.secrets)

    async def _compute(self, compute: Callable[[], Result]) -> Result:
        """What is made of a model's text, beside the event loop if the run has read much: each address of the text is
        compared with all of it.
        """
        return await compute_beside_loop(sum(map(len, self._stored_texts.values())), compute)

    def _is_by_model(self, body: EventBody, step_id: str | None) -> bool:
        """Whether a model wrote the output of a step. A tool's output was redacted at its return."""
        if isinstance(body, StepFinished) and body.output.effective == "rules":
            return any(
                step.id == step_id and step.action in ("completion", "skill") for step in self._run.state.plan_steps
            )
        return True


def _build_unsafe_output(event: OutputGuarded, output: StepOutput) -> StepOutput:
    failure = event.failure
    code, message = (failure.error_code, failure.message) if failure else (UnsafeAnswerError.code, "")
    return StepOutput(error_code=code, error=message, tainted=output.tainted)


def _iter_argument_texts(output: StepOutput) -> Iterator[str]:
    """Yields every text, number and key in the arguments of the client's tools that an answer calls."""
    calls = output.value.get("tool_calls") if isinstance(output.value, dict) else None
    for call in calls if isinstance(calls, list) else ():
        written = read_arguments(call)
        try:
            waiting: list[JsonValue] = [json.loads(written)]
        except (ValueError, RecursionError):
            waiting = [written]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                yield from value
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value
            elif value is not None and not isinstance(value, bool):
                yield str(value)


def _is_tool_call_text(text: str, tools: Sequence[JsonObject]) -> bool:
    functions = [tool.get("function") for tool in tools]
    schemas = {str(one.get("name")): one.get("parameters") for one in functions if isinstance(one, dict)}
    known_schemas = {name: schema if isinstance(schema, dict) else {} for name, schema in schemas.items()}
    return bool(read_calls(text, (), known_schemas).calls)
