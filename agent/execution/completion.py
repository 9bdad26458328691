"""`CompletionWriter`: the step that writes the answer, streamed, on the tier the plan asks for.

Without a model, or when it fails before results are lost, the answer is composed from the results by rule.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from agent.core.errors import ModelError, ModelOutputError
from agent.core.events import AnswerStarted, FinishReason, Purpose, StepOutput
from agent.core.language import ENGLISH, name_of
from agent.core.llm.port import ModelChunk
from agent.core.models import ChatMessage, JsonObject, PlanStep, Source, Tier
from agent.execution.compose import compose, without_results
from agent.execution.decide import given_up, reason_of
from agent.execution.metering import MeteredModels
from agent.execution.outputs import JUDGE_CHARS, SKILL_CHARS, data_block, number_sources, results
from agent.execution.run import Run
from agent.execution.screening import tools_for_models
from agent.execution.streaming import DeltaWriter
from agent.execution.tailor import AnswerTailor
from agent.execution.tailor_brief import brief_for
from agent.execution.tool_deltas import join_tool_calls
from agent.prompts import render

HISTORY_MESSAGES = 20
"""How many earlier messages a completion sees: enough for a conversation, little enough for an 8k context."""


FAILED = "- What stands inside <failed> blocks could not be found out: say so, and do not fill it in."
MEMORY_CHARS = 4_000
"""How much of what is remembered a completion sees."""


class CompletionWriter:
    """Carries out one attempt of a completion step."""

    def __init__(self, run: Run, step: PlanStep, attempt: int) -> None:
        self._run = run
        self._step = step
        self._attempt = attempt
        self._tailor: AnswerTailor | None = None
        self._extractive = False

    async def write(self, feedback: str | None) -> StepOutput:
        """The answer. Raises `ModelOutputError` for half a stream (to be judged RETRY), and every `ModelError` when
        there is no result to fall back on: a plain question that cannot be asked is a failure, not an answer."""
        outcomes = await results(self._run)
        sources = number_sources(outcomes)
        recalled = self._run.state.retrieved.items if self._run.state.retrieved else ()
        tainted = self._run.state.tainted or any(output.tainted for _, output in outcomes)
        tainted = tainted or any(item.tainted for item in recalled)
        brief = brief_for(self._run, outcomes)
        self._tailor = AnswerTailor(self._run, self._step, self._attempt, brief) if brief is not None else None
        self._extractive = brief is not None and brief.extractive
        if _is_command(self._run):
            return await self._by_rules(outcomes, sources, "an exact command needs no model", tainted=tainted)
        if self._run.engine.settings.executor_mode == "rules":  # as it was asked for: nothing has fallen back
            output = await self._by_rules(outcomes, sources, "AGENT_EXECUTOR_MODE is rules", tainted=tainted)
            return output.model_copy(update={"fallback_reason": None})
        if not self._run.has_model:
            output = await self._by_rules(outcomes, sources, "no model is configured", tainted=tainted)
            return output.model_copy(update={"fallback_reason": None}) if self._run.rules_are_meant else output
        if self._run.room.knowledge and outcomes and not sources:
            # What was not found is not asked of a model: it would know an answer all the same.
            return await self._by_rules(outcomes, sources, "the documents say nothing about it", tainted=tainted)
        try:
            if self._tailor is not None:
                tier = self._tier()
                return await self._tailor.write(feedback, tier, self._why(tier), tainted=tainted)
            text, calls, finish = await self._stream(outcomes, sources, feedback)
        except ModelError as error:
            first_break = isinstance(error, ModelOutputError) and self._attempt == 1
            if first_break or not outcomes:
                raise
            return await self._by_rules(outcomes, sources, error.message, tainted=tainted)
        value: JsonObject | str = {"text": text, "tool_calls": list(calls)} if calls else text
        shown = text or ("[the client's tools were called]" if calls else "")
        return StepOutput(value=value, text=shown, tainted=tainted, sources=sources, finish_reason=finish)

    async def _stream(
        self, outcomes: list[tuple[PlanStep, StepOutput]], sources: tuple[Source, ...], feedback: str | None
    ) -> tuple[str, list[JsonObject], FinishReason]:
        run, tier = self._run, self._tier()
        passthrough = () if run.room.planning else tools_for_models(run)
        messages = self._messages(outcomes, sources, feedback)
        started = AnswerStarted(
            tier=tier,
            model=run.engine.models.name(tier, run.room),
            reason=self._why(tier),
            restarted=run.state.answering is not None,
        )
        await run.note(started, step_id=self._step.id, attempt=self._attempt)
        purpose: Purpose = "task" if _is_task(run) else "completion"
        models = MeteredModels(run, self._step.id, self._attempt)
        stream = models.stream(purpose, messages, tier=tier, tools=passthrough, max_tokens=run.state.request.max_tokens)
        # An answer that is to be translated, or looked at as a whole, is not shown before it is.
        translated = run.state.understood is not None and run.state.understood.translated
        quiet = translated or run.room.guard_output.whole
        return await _drain(stream, None if quiet else DeltaWriter(run, self._step.id, self._attempt))

    async def _by_rules(
        self,
        outcomes: list[tuple[PlanStep, StepOutput]],
        sources: tuple[Source, ...],
        reason: str,
        *,
        tainted: bool,
    ) -> StepOutput:
        if self._tailor is not None and self._extractive:
            return await self._tailor.by_rules(reason, tainted=tainted)
        text = compose(self._told(outcomes), self._run.state.prompt) if outcomes else without_results(self._run)
        restarted = self._run.state.answering is not None
        started = AnswerStarted(tier=None, model=None, reason=f"composed by rule: {reason}", restarted=restarted)
        await self._run.note(started, step_id=self._step.id, attempt=self._attempt)
        return StepOutput(
            value=text, text=text, tainted=tainted, sources=sources, effective="rules", fallback_reason=reason
        )

    def _told(self, outcomes: list[tuple[PlanStep, StepOutput]]) -> list[tuple[PlanStep, StepOutput]]:
        """What a composed answer holds: where a room requires its tools, not what another step has taken up."""
        steps = self._run.state.plan.steps if self._run.state.plan else ()
        used = {name for step in steps if not step.is_completion for name in step.depends_on}
        kept = [(step, output) for step, output in outcomes if step.id not in used]
        return kept if self._run.room.required_tools and kept else outcomes

    def _messages(
        self, outcomes: list[tuple[PlanStep, StepOutput]], sources: tuple[Source, ...], feedback: str | None
    ) -> tuple[JsonObject, ...]:
        """Trusted text in the system message; the request and the results, each in its own block, in the user's."""
        run = self._run
        history = run.state.retrieved.history if run.state.retrieved else ()
        system = self._system(outcomes, sources, history)
        messages: list[JsonObject] = [{"role": "system", "content": system}] if system else []
        spoken = [m for m in history if m.role not in ("system", "developer")]
        kept = spoken[-HISTORY_MESSAGES:] if run.room.planning else spoken
        messages += [message.wire() for message in kept]
        question = run.state.question
        failed = given_up(run.state)
        if outcomes or failed:
            blocks = [
                data_block("result", output.text, limit=SKILL_CHARS, step=step.id, tool=step.tool, intent=step.intent)
                for step, output in outcomes
            ]
            blocks += [
                data_block(
                    "failed", reason_of(run.state, step), limit=JUDGE_CHARS, step=step.id, tool=step.tool,
                    intent=step.intent,
                )
                for step in failed
            ]  # fmt: skip
            question = data_block("user_request", question, limit=SKILL_CHARS) + "\n" + "\n".join(blocks)
        memories = run.state.retrieved.items if run.state.retrieved else ()
        if memories:
            remembered = "\n".join(f"- {item.text}" for item in memories)
            question = data_block("memory", remembered, limit=MEMORY_CHARS) + "\n" + question
        if feedback:
            question += f"\n\nAn earlier answer was not accepted: {feedback}"
        messages.append(ChatMessage(role="user", content=question, images=run.state.request.images).wire())
        return tuple(messages)

    def _system(
        self,
        outcomes: list[tuple[PlanStep, StepOutput]],
        sources: tuple[Source, ...],
        history: tuple[ChatMessage, ...],
    ) -> str:
        """The operator's instructions, then the caller's own system messages."""
        room = self._run.room
        callers = "\n\n".join(m.content for m in history if m.role in ("system", "developer") and m.content)
        recalled = self._run.state.retrieved.items if self._run.state.retrieved else ()
        memory = render("memory") if recalled else ""
        operator = "\n\n".join(part for part in (room.system_prompt, callers, memory, self._language()) if part)
        failed = given_up(self._run.state)
        if not outcomes and not failed:
            return "\n\n".join(part for part in (operator, room.persona) if part)
        citations = ""
        if sources:
            listed = "\n".join(
                f"[{source.id}] {source.name}" + (f" {source.url}" if source.url else "") for source in sources
            )
            citations = f"- Cite sources as [n] right after what they support. The sources:\n{listed}"
        return render(
            "completion",
            system=operator + "\n\n" if operator else "",
            persona=room.persona + "\n\n" if room.persona else "",
            failed=FAILED + "\n" if failed else "",
            citations=citations,
        )

    def _language(self) -> str:
        """The word to a model that answers in the user's language itself."""
        understood = self._run.state.understood
        if understood is None or understood.language == ENGLISH or understood.translated:
            return ""
        return f"Answer in {name_of(understood.language)}, the language of the request."

    def _tier(self) -> Tier:
        return "fast" if _is_task(self._run) else self._step.tier or self._run.room.answer_tier

    def _why(self, tier: Tier) -> str:
        if _is_task(self._run):
            return "a background prompt of the client goes to the fast tier"
        if self._step.tier is not None:
            return f"the plan asks for the {tier} tier"
        return f"the room answers on the {tier} tier"


_FINISH: Mapping[str, FinishReason] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}


async def _drain(
    stream: AsyncGenerator[ModelChunk, None], writer: DeltaWriter | None
) -> tuple[str, list[JsonObject], FinishReason]:
    """The whole text, the client's tool calls and why it ended. What came before a break is flushed."""
    finish: FinishReason = "stop"
    text: list[str] = []
    calls: list[JsonObject] = []
    try:
        async with aclosing(stream):
            async for chunk in stream:
                text.append(chunk.text)
                calls += chunk.tool_calls
                finish = _FINISH.get(chunk.finish_reason or "", finish)
                if writer is not None:
                    await writer.add(chunk.reasoning, "reasoning")
                    await writer.add(chunk.text)
    finally:
        if writer is not None:
            await writer.end()
    return "".join(text), join_tool_calls(calls), finish


def _is_command(run: Run) -> bool:
    """Whether the result is the answer as it is; not where the caller wants it in another form."""
    if "response_format" in run.state.request.options:
        return False
    return run.state.understood is not None and run.state.understood.route == "command"


def _is_task(run: Run) -> bool:
    return run.state.understood is not None and run.state.understood.route == "task"
