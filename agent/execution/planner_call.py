"""The planner's model call of a run. Meters it and streams an answer in it."""

from contextlib import aclosing

from agent.answers.unwrapping import MarkdownFence, remove_markdown_fence
from agent.core.errors import ModelRequestError
from agent.core.events import AnswerStarted, StepOutput
from agent.core.models import JsonObject
from agent.core.plan_outcome import is_router_replaced
from agent.core.run_state import RunState
from agent.llm.port import ONE_CALL, ModelChunk, ModelReply, ResponseSchema, read_end
from agent.planning.parse import is_longer_than_word, read_word
from agent.planning.prompt import count_left_out
from agent.planning.reply import AnswerDetector
from agent.planning.request import AnswerForm
from agent.policy.approval import get_plan_feedback
from agent.run_context.answer_stream import DeltaWriter
from agent.run_context.model_calls import MeteredModels, ModelCall
from agent.run_context.run import Run

ANSWER_STEP = "answer"
"""The id of the step that records a planner's answer."""
DECISION_TOKENS = 2_000
"""Tokens of a small model's decision. A text in it may be a whole file; one that never ends is cut here."""
REASON = "the planner answers by itself"
_SHAPING_OPTIONS = frozenset({
    "frequency_penalty", "logit_bias", "max_completion_tokens", "min_p", "prediction", "presence_penalty",
    "reasoning_effort", "repetition_penalty", "response_format", "seed", "stop", "top_k", "top_p", "verbosity",
    "web_search_options",
})  # fmt: skip
"""Parameters that shape the answer's text. They apply to a completion but not to a planner's call."""


def choose_answer_form(run: Run) -> AnswerForm:
    """Chooses how the planner of this run may answer."""
    room, request, state = run.room, run.state.request, run.state
    if (state.is_gated and room.required_tools) or room.gates or room.knowledge or not run.works_with_model:
        return "none"
    tainted_memory = state.retrieval is not None and any(item.tainted for item in state.retrieval.items)
    if (
        run.profile.decides == "rounds"
        or (state.plan is not None and not _is_talk_about_plan(state))  # results exist
        or room.answer_tier == "high"
        or room.persona
        or room.citations
        or tainted_memory  # an answer may quote it, but the planner's prompt omits it
        or request.images
        or request.max_tokens is not None
        or _SHAPING_OPTIONS & request.options.keys()
    ):
        return "empty"
    return "text"


def _is_talk_about_plan(state: RunState) -> bool:
    """Whether a person replied to a plan before anything was done."""
    return bool(get_plan_feedback(state)) and not state.list_succeeded_steps()


class PlannerCall:
    """Implements `PlannerModel` for one run. Its calls have no tools."""

    def __init__(self, run: Run, form: AnswerForm) -> None:
        self._run = run
        self._models = MeteredModels(run)
        translated = run.state.understanding is not None and run.state.understanding.translated
        # An answer that needs translation, a check as a whole or a first sentence of ours is not streamed.
        # What is said about a plan stands in the next question.
        whole = run.room.guard_output.requires_whole_answer or is_router_replaced(run.state)
        self._streams = form == "text" and not (translated or whole or run.state.plan is not None)

    async def ask(self, messages: tuple[JsonObject, ...], schema: ResponseSchema | None) -> ModelReply:
        """See `PlannerModel.ask`. A call that the provider refuses, because the wire offers none, is the decision."""
        try:
            return await self._ask(messages, schema)
        except ModelRequestError as error:
            if not error.written:
                raise
            model = self._run.engine.models.get_model_name("fast", self._run.room)
            return self._run.redaction.redact_reply(ModelReply(error.written, model, "stop", ONE_CALL))

    async def _ask(self, messages: tuple[JsonObject, ...], schema: ResponseSchema | None) -> ModelReply:
        if not self._streams:
            limit = DECISION_TOKENS if self._run.profile.decides == "rounds" else None
            return await self._models.complete(ModelCall("planner", messages, schema=schema, max_tokens=limit))
        stream = _AnswerStream(self._run)
        try:
            temperature = self._run.state.request.temperature or 0.0
            call = ModelCall("planner", messages, schema=schema, temperature=temperature)
            return await self._models.complete_streaming(call, keep_message=False, on_chunk=stream.write)
        finally:
            await stream.end()

    async def ask_word(self, messages: tuple[JsonObject, ...]) -> str:
        """See `PlannerModel.ask_word`."""
        text = ""
        calls = self._models.stream(ModelCall("planner", messages, max_tokens=DECISION_TOKENS))
        async with aclosing(calls) as chunks:
            async for chunk in chunks:
                text = chunk.text if chunk.restarts else text + chunk.text
                if is_longer_than_word(text):
                    return ""
        return read_word(text)


class _AnswerStream:
    """Streams the answer in a planner's reply, with the model's reasoning before it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._detector = AnswerDetector()
        self._fence = MarkdownFence()
        self._reasoning: list[str] = []
        self._writer: DeltaWriter | None = None

    async def write(self, chunk: ModelChunk) -> None:
        """Adds one piece of the reply."""
        if chunk.restarts:
            self._detector, self._fence = AnswerDetector(), MarkdownFence()
            if self._writer is not None:
                await self._writer.restart()
        self._reasoning.append(chunk.reasoning)
        text = self._fence.feed(self._detector.feed(chunk.text)) if chunk.text else ""
        if self._writer is None:
            if not text and not chunk.refusal:
                return
            await self._run.note(note_answer_started(self._run), step_id=ANSWER_STEP, attempt=1)
            self._writer = DeltaWriter(self._run, ANSWER_STEP, 1)
        reasoning = "".join(self._reasoning)
        self._reasoning.clear()
        if reasoning:
            await self._writer.add(reasoning, "reasoning")
        await self._writer.add(text)
        if chunk.refusal:
            await self._writer.add(chunk.refusal, "refusal")

    async def end(self) -> None:
        """Writes the rest that the filters hold."""
        if self._writer is not None:
            await self._writer.add(self._fence.end())
            await self._writer.end()


def note_answer_started(run: Run) -> AnswerStarted:
    """The event that begins a planner's answer."""
    model = run.engine.models.get_model_name("fast", run.room)
    left_out = count_left_out(run.state.retrieval.history) if run.state.retrieval is not None else 0
    restarted = run.state.answer_start is not None
    return AnswerStarted(tier="fast", model=model, reason=REASON, restarted=restarted, left_out=left_out)


def build_answer_output(run: Run, reply: ModelReply) -> StepOutput:
    """A planner's answer as the output of its step."""
    text, end = remove_markdown_fence(reply.text), read_end(reply.finish_reason)
    return StepOutput(
        value=text,
        text=text,
        tainted=run.state.has_outside_text,
        finish_reason="stop" if end.is_whole else end.finish_reason,
        interruption=end.interruption,
        refused=reply.refused,
        provider_fields=reply.provider_fields,
    )
