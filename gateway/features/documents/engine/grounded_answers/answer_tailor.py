"""`AnswerTailor`: writes one answer from documents in a run, and streams it as far as it has been checked.

Verbatim sentences are shown at once, other claims paragraph by paragraph after the entailment check, which runs while
the model continues to write. What fails is rewritten once, then left out; nothing that was shown is taken back.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from time import monotonic
from typing import Literal

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import BudgetError, ModelError, ModelOutputError
from agent.core.events import AnswerChecked, AnswerDelta, AnswerStarted, ClaimProblem, StepOutput
from agent.core.models import JsonObject, PlanStep, Source, Tier
from agent.core.plan_outcome import EMPTY_REPLIES
from agent.llm.port import WHOLE, ModelChunk, ReplyEnd, read_end
from agent.run_context.answer_stream import DeltaWriter
from agent.run_context.model_calls import MeteredModels, ModelCall
from agent.run_context.run import Run
from gateway.features.documents.engine.grounded_answers import AnswerBuilder, BuiltAnswer, CheckedUnit
from gateway.features.documents.engine.grounded_answers.answer_builder import CERTAIN_RELEVANCE
from gateway.features.documents.engine.grounded_answers.brief import Brief, build_prompt
from gateway.features.documents.engine.grounded_answers.claim_review import (
    ClaimReview,
    ReviewResult,
    make_rewrite_messages,
)
from gateway.features.documents.engine.grounded_answers.entailment import ENTAILMENT_SCHEMA

SENTENCE_ENDS = ".!?\n|\u3002\uff01\uff1f]"
"""Characters after which there may be a new sentence to show."""
Action = Literal["accept", "retry_strict", "drop", "say_not_in_documents"]


class AnswerTailor:
    """Writes one attempt at an answer. With `shows_early` it is streamed as far as it has been checked."""

    def __init__(self, run: Run, step: PlanStep, attempt: int, brief: Brief, *, shows_early: bool = True) -> None:
        self._run = run
        self._step = step
        self._attempt = attempt
        self._brief = brief
        seen = _list_shown_sources(run)
        self._builder = AnswerBuilder(brief.request, run_id=run.run_id, known=brief.known, seen=seen)
        self._models = MeteredModels(run, step.id, attempt)
        self._review = ClaimReview(self._builder, self._ask_entailment)
        self._shows_early = shows_early
        self._checking: asyncio.Task[None] | None = None
        self._shown = ""
        self._outgoing = run.redaction.make_stream_filters().create()

    @property
    def is_extractive(self) -> bool:
        """See `EvidenceWriter.is_extractive`."""
        return self._brief.is_extractive

    async def quote_passages(self, reason: str, *, tainted: bool) -> StepOutput:
        """The best passages verbatim: the answer without a model. `reason` is why there is none."""
        started = monotonic()
        await self._start(None, f"composed by rule: {reason}")
        answer = await asyncio.to_thread(self._builder.quote_passages)
        count = len(answer.output.citations)
        await self._emit(AnswerChecked(claims=count, passed=count, action="accept", duration=monotonic() - started))
        output = self._make_output(answer, tainted=tainted)
        return output.model_copy(update={"effective": "rules", "fallback_reason": reason})

    async def write(self, feedback: str | None, tier: Tier, why: str, *, tainted: bool) -> StepOutput:
        """The model's answer as far as it is supported.

        Raises `ModelError` for a failed, unreadable or empty reply, also of the rewrite if nothing else is supported.
        """
        await self._start(tier, why)
        messages = build_prompt(self._run, self._brief, self._builder.format, feedback)
        text, end = await self._stream(messages, tier)
        finish = end.finish_reason
        if not text.strip() and finish != "content_filter":
            raise ModelOutputError(end.describe() or EMPTY_REPLIES[finish], agent_id="tailor")
        started = monotonic()
        result = await self._review.review_text(text, may_be_cut=not end.is_whole)
        await self._record(result, "retry_strict" if result.failed else "accept", 0, monotonic() - started)
        if result.failed:
            result = await self._rewrite(messages, text, result, tier)
        built = await self._review.build(result, adds_overlooked=self._run.profile.checks_answers)
        if self._is_mistaken(built):
            return await self._quote_instead(tainted=tainted)
        output = self._make_output(built, tainted=tainted, end=end)
        if result.is_hopeless:
            return output.model_copy(update={"fallback_reason": result.make_failure().message})
        if self._review.skipped_because:
            unchecked_note = f"the meaning of the answer was not checked: {self._review.skipped_because}"
            return output.model_copy(update={"fallback_reason": unchecked_note})
        return output

    def _is_mistaken(self, built: BuiltAnswer) -> bool:
        """Whether a small model gave no answer although a passage is relevant beyond doubt."""
        best = max((one.relevance_score for one in self._brief.request.context_chunks), default=0.0)
        unsure = self._run.profile.checks_answers and self._brief.is_extractive and not self._shown
        return unsure and best >= CERTAIN_RELEVANCE and not built.output.citations

    async def _quote_instead(self, *, tainted: bool) -> StepOutput:
        reason = "the model found no answer in the passages; a small model overlooks some, so they are quoted"
        answer = await asyncio.to_thread(self._builder.quote_passages)
        output = self._make_output(answer, tainted=tainted)
        return output.model_copy(update={"effective": "rules", "fallback_reason": reason})

    async def _rewrite(
        self, messages: Sequence[JsonObject], text: str, result: ReviewResult, tier: Tier
    ) -> ReviewResult:
        """The result after the failed units were written again, once, and checked again."""
        started = monotonic()
        try:
            rewrite_messages = make_rewrite_messages(messages, text, result.failed)
            call = ModelCall("completion", rewrite_messages, tier=tier, has_response_format=False)
            reply = await self._models.complete(call)
        except (ModelError, BudgetError) as error:  # recorded by its own event; what failed is left out
            if isinstance(error, ModelError) and not result.has_support:
                raise  # the passages are quoted instead
            again = result
        else:
            again = await self._review.review_rewrite(result, reply.text)
        rewritten = max(0, len(result.failed) - len(again.failed))
        action: Action = "say_not_in_documents" if not again.has_support else "drop" if again.failed else "accept"
        await self._record(again, action, rewritten, monotonic() - started)
        return again

    async def _ask_entailment(self, messages: tuple[JsonObject, ...], max_tokens: int) -> str:
        call = ModelCall("entailment", messages, schema=ENTAILMENT_SCHEMA, max_tokens=max_tokens)
        reply = await self._models.complete(call)
        return reply.text

    async def _record(self, result: ReviewResult, action: Action, rewritten: int, seconds: float) -> None:
        failed = result.failed
        await self._emit(
            AnswerChecked(
                claims=result.claims,
                passed=result.claims - len(failed),
                action=action,
                problems=tuple(self._describe_problem(one) for one in failed),
                rewritten=rewritten,
                failure=result.make_failure().to_failure() if result.is_hopeless else None,
                unchecked=self._review.skipped_because,
                duration=seconds,
            )
        )

    def _describe_problem(self, checked: CheckedUnit) -> ClaimProblem:
        """A failed sentence as the trace may show it."""
        text = self._run.redaction.redact_text(checked.unit.text)  # before the cut, which could split a secret
        return ClaimProblem(text=text[:600], reason=checked.problem)

    async def _stream(self, messages: tuple[JsonObject, ...], tier: Tier) -> tuple[str, ReplyEnd]:
        """The whole reply and its end, and shows what is supported meanwhile."""
        max_tokens = self._run.state.request.max_tokens
        call = ModelCall("completion", messages, tier=tier, max_tokens=max_tokens, has_response_format=False)
        stream = self._models.stream(call)
        understood = self._run.state.understanding
        # An answer that is to be translated, guarded as a whole, shortened or reformatted is not shown before.
        quiet = (understood is not None and understood.translated) or not self._builder.format.is_plain
        quiet = quiet or self._run.room.guard_output.requires_whole_answer or not self._shows_early
        writer = DeltaWriter(self._run, self._step.id, self._attempt)
        try:
            text, end = await self._read_stream(stream, writer, quiet=quiet)
            if self._checking is not None:
                await self._checking
                await self._show(text)
            return text, end
        finally:
            if self._checking is not None:
                await cancel_and_wait(self._checking)

    async def _read_stream(
        self, stream: AsyncGenerator[ModelChunk, None], writer: DeltaWriter, *, quiet: bool
    ) -> tuple[str, ReplyEnd]:
        parts: list[str] = []
        end = WHOLE
        try:
            async with aclosing(stream):
                async for chunk in stream:
                    if chunk.restarts:
                        parts.clear()
                        await self._restart()
                    parts.append(chunk.text)
                    end = read_end(chunk.finish_reason) if chunk.finish_reason is not None else end
                    if chunk.reasoning and not quiet:
                        await writer.add(chunk.reasoning, "reasoning")
                    if not quiet and any(end in chunk.text for end in SENTENCE_ENDS):
                        await self._show("".join(parts))
                        self._check_in_background("".join(parts))
        finally:
            await writer.end()
        return "".join(parts), end

    def _check_in_background(self, text: str) -> None:
        """Starts the check of the complete paragraphs, one check at a time."""
        if self._checking is not None and self._checking.done():
            self._checking.result()  # raises what the check raised
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._review.review_complete_paragraphs(text))

    async def _show(self, text: str) -> None:
        """Sends what is new in the supported beginning of the text so far."""
        ready = self._builder.render(await self._review.list_presentable(text))
        if len(ready.text) > len(self._shown) and ready.text.startswith(self._shown):
            piece = self._outgoing.feed(ready.text[len(self._shown) :])
            self._shown = ready.text
            if piece:
                delta = AnswerDelta(text=piece, sources=ready.sources)
                await self._emit(self._run.redaction.mark_redacted(delta))

    def _make_output(self, answer: BuiltAnswer, *, tainted: bool, end: ReplyEnd = WHOLE) -> StepOutput:
        content = answer.output.content
        return StepOutput(
            value=content,
            text=content,
            tainted=tainted,
            sources=answer.sources,
            finish_reason="stop" if end.is_whole else end.finish_reason,
            interruption=end.interruption,
            tailored=answer.output,
        )

    async def _start(self, tier: Tier | None, why: str) -> None:
        model = self._run.engine.models.get_model_name(tier, self._run.room) if tier is not None else None
        restarted = self._run.state.answer_start is not None
        self._shown = ""
        self._outgoing = self._run.redaction.make_stream_filters().create()
        await self._emit(AnswerStarted(tier=tier, model=model, reason=why, restarted=restarted))

    async def _restart(self) -> None:
        """Declares void what was shown: it was the model's thought."""
        if self._shown and (current := self._run.state.answer_start) is not None:
            await self._start(current.tier, current.reason)

    async def _emit(self, body: AnswerChecked | AnswerDelta | AnswerStarted) -> None:
        await self._run.emit(body, step_id=self._step.id, attempt=self._attempt)


def _list_shown_sources(run: Run) -> tuple[Source, ...]:
    """The sources that readers have seen in an attempt that broke off."""
    sources_by_number: dict[int, Source] = {}
    for event in run.events:
        if isinstance(event.body, AnswerDelta):
            sources_by_number |= {source.id: source for source in event.body.sources}
    return tuple(sources_by_number[number] for number in sorted(sources_by_number))
