"""`AnswerTailor`: answers from documents, shown only as far as they have been checked.

What a model writes is read sentence by sentence while it streams, and a sentence is shown once it and all before it
stand. What does not stand is written again once, in its place, and otherwise left out: nothing shown is taken back.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from time import monotonic

from pydantic import JsonValue

from agent.core.errors import BudgetError, ModelError, ModelOutputError
from agent.core.events import AnswerChecked, AnswerDelta, AnswerStarted, ClaimProblem, FinishReason, StepOutput
from agent.core.models import JsonObject, PlanStep, Source, Tier
from agent.grounded_answers import Tailored, Tailoring, Verdict, kept, presentable, read
from agent.grounded_answers.brief import Brief, tailor_messages
from agent.grounded_answers.errors import TailorHallucinationError
from agent.grounded_answers.rewrite import problems, rewritten, told
from agent.grounded_answers.schema_form import SchemaForm
from agent.llm.port import ModelChunk
from agent.prompts import render as prompt
from agent.run_context.answer_stream import DeltaWriter
from agent.run_context.model_calls import MeteredModels
from agent.run_context.run import Run

SENTENCE_ENDS = ".!?\n|\u3002\uff01\uff1f]"
"""Characters after which there may be a new sentence to show."""


class AnswerTailor:
    """Writes one attempt at an answer."""

    def __init__(self, run: Run, step: PlanStep, attempt: int, brief: Brief) -> None:
        self._run = run
        self._step = step
        self._attempt = attempt
        self._brief = brief
        seen = _seen(run)
        self._tailoring = Tailoring(brief.wanted, run_id=run.run_id, known=brief.known, seen=seen)
        self._models = MeteredModels(run, step.id, attempt)
        self._form = SchemaForm(self._models, brief.wanted.user_query, run.state.request.options)
        self._shown = ""
        self._outgoing = run.redaction.stream_filters().create()

    async def by_rules(self, reason: str, *, tainted: bool) -> StepOutput:
        """The answer from the passages' own sentences."""
        started = monotonic()
        await self._begin(None, f"composed by rule: {reason}")
        tailored = await asyncio.to_thread(self._tailoring.by_rules)  # a second for two hundred passages
        tailored = self._form.by_rules(tailored, reason)
        count = len(tailored.output.citations)
        await self._emit(AnswerChecked(claims=count, passed=count, action="accept", duration=monotonic() - started))
        output = self._output(tailored, tainted=tainted)
        return output.model_copy(update={"effective": "rules", "fallback_reason": reason})

    async def write(self, feedback: str | None, tier: Tier, why: str, *, tainted: bool) -> StepOutput:
        """The answer by the model, as far as it stands. Raises `ModelError` for a reply that is none, for an empty one,
        and where nothing stands and the model cannot be asked again; and `TailorSchemaError` for an answer that does
        not fit the caller's schema."""
        await self._begin(tier, why)
        messages = tailor_messages(self._run, self._brief, self._tailoring.format, feedback)
        text, finish = await self._stream(messages, tier)
        if not text.strip() and finish == "stop":
            raise ModelOutputError("the model's answer is empty", agent_id="tailor")
        started = monotonic()
        verdicts = await asyncio.to_thread(self._checked, text)
        failed = problems(verdicts)
        await self._record(verdicts, "retry_strict" if failed else "accept", 0, monotonic() - started)
        if failed:
            verdicts = await self._second_chance(messages, text, verdicts, tier)
        standing = kept(verdicts)
        total = sum(1 for verdict in verdicts if verdict.states or verdict.problem)
        passed = sum(1 for verdict in standing if verdict.states)
        share = min(1.0, passed / total) if total else 1.0
        hopeless = problems(verdicts) and not standing and self._brief.extractive
        own_words = await asyncio.to_thread(self._tailoring.instead) if hopeless else None
        if own_words is None:
            tailored = await asyncio.to_thread(self._tailoring.finish, standing, share=share)
        else:
            tailored = own_words
        tailored = await self._form.by_model(tailored, tier)
        output = self._output(tailored, tainted=tainted, finish=finish)
        if passed or not failed:
            return output
        told = {"fallback_reason": _failure_of(failed).message, "effective": "rules" if own_words else output.effective}
        return output.model_copy(update=told)

    async def _second_chance(
        self, messages: Sequence[JsonObject], text: str, verdicts: list[Verdict], tier: Tier
    ) -> list[Verdict]:
        """The units after those that failed were written again, once; the second check is in the log."""
        failed = problems(verdicts)
        started = monotonic()
        asked: tuple[JsonObject, ...] = (
            *messages,
            {"role": "assistant", "content": text},
            {"role": "user", "content": prompt("tailor_strict", problems=told(failed))},
        )
        try:
            reply = await self._models.complete("completion", asked, tier=tier, formed=False)
        except (ModelError, BudgetError) as error:  # in the log by its own event; what failed is left out
            if isinstance(error, ModelError) and not any(verdict.states for verdict in kept(verdicts)):
                raise  # nothing is left of what it wrote: the documents' own words are
            again = verdicts
        else:
            again = await asyncio.to_thread(rewritten, verdicts, reply.text, self._tailoring.ground)
        mended = sum(not one.problem for one in again) - sum(not one.problem for one in verdicts)
        stays = any(verdict.states for verdict in kept(again))
        action = "say_not_in_documents" if not stays else "drop" if problems(again) else "accept"
        await self._record(again, action, max(0, mended), monotonic() - started)
        return again

    async def _record(self, verdicts: Sequence[Verdict], action: str, mended: int, seconds: float) -> None:
        failed = problems(verdicts)
        told_of = [one for one in verdicts if one.problem or one.states]
        hopeless = failed and not any(one.states for one in kept(verdicts))
        await self._emit(
            AnswerChecked.model_validate(
                {
                    "claims": len(told_of),
                    "passed": sum(not one.problem for one in told_of),
                    "action": action,
                    "problems": tuple(self._problem(one) for one in failed),
                    "rewritten": mended,
                    "failure": _failure_of(failed).to_failure() if hopeless else None,
                    "duration": seconds,
                }
            )
        )

    def _problem(self, verdict: Verdict) -> ClaimProblem:
        """A sentence that failed, as the trace may show it."""
        text = self._run.redaction.redact_text(verdict.unit.text)  # before the cut, which may part a secret
        return ClaimProblem(text=text[:600], reason=verdict.problem)

    async def _stream(self, messages: tuple[JsonObject, ...], tier: Tier) -> tuple[str, FinishReason]:
        """The whole reply and why it ended; what stands of it is shown on the way."""
        most = self._run.state.request.max_tokens
        stream = self._models.stream("completion", messages, tier=tier, max_tokens=most, formed=False)
        understood = self._run.state.understanding
        # What is yet to be translated, looked at, cut or brought into another form is not shown before it is.
        quiet = (understood is not None and understood.translated) or not self._tailoring.format.is_plain
        quiet = quiet or self._run.room.guard_output.requires_whole_answer or self._form.is_asked
        writer = DeltaWriter(self._run, self._step.id, self._attempt)
        return await self._drain(stream, writer, quiet=quiet)

    async def _drain(
        self, stream: AsyncGenerator[ModelChunk, None], writer: DeltaWriter, *, quiet: bool
    ) -> tuple[str, FinishReason]:
        parts: list[str] = []
        finish: FinishReason = "stop"
        try:
            async with aclosing(stream):
                async for chunk in stream:
                    parts.append(chunk.text)
                    if chunk.finish_reason == "length":
                        finish = "length"
                    elif chunk.finish_reason == "content_filter":
                        finish = "content_filter"
                    if chunk.reasoning and not quiet:
                        await writer.add(chunk.reasoning, "reasoning")
                    if not quiet and any(end in chunk.text for end in SENTENCE_ENDS):
                        await self._show("".join(parts))
        finally:
            await writer.end()
        return "".join(parts), finish

    async def _show(self, text: str) -> None:
        """Show what stands of the text so far; its last sentence may still go on, and does not count yet."""
        verdicts = await asyncio.to_thread(self._checked, text, finished=False)
        ready = self._tailoring.rendered(presentable(verdicts))
        if len(ready.text) > len(self._shown) and ready.text.startswith(self._shown):
            piece = self._outgoing.feed(ready.text[len(self._shown) :])
            self._shown = ready.text
            if piece:
                delta = AnswerDelta(text=piece, sources=ready.sources)
                await self._emit(self._run.redaction.mark_redacted(delta))

    def _checked(self, text: str, *, finished: bool = True) -> list[Verdict]:
        plain = _told_in_json(text) if self._tailoring.format.shape == "json" else text
        return self._tailoring.ground.check(read(plain, finished=finished))

    def _output(self, tailored: Tailored, *, tainted: bool, finish: FinishReason = "stop") -> StepOutput:
        content = tailored.output.content
        return StepOutput(
            value=content,
            text=content,
            tainted=tainted,
            sources=tailored.sources,
            finish_reason=finish,
            tailored=tailored.output,
        )

    async def _begin(self, tier: Tier | None, why: str) -> None:
        model = self._run.engine.models.get_model_name(tier, self._run.room) if tier is not None else None
        restarted = self._run.state.answer_start is not None
        self._shown = ""
        self._outgoing = self._run.redaction.stream_filters().create()
        await self._emit(AnswerStarted(tier=tier, model=model, reason=why, restarted=restarted))

    async def _emit(self, body: AnswerChecked | AnswerDelta | AnswerStarted) -> None:
        await self._run.emit(body, step_id=self._step.id, attempt=self._attempt)


def _seen(run: Run) -> tuple[Source, ...]:
    """The sources readers have been sent by an attempt that broke off."""
    found: dict[int, Source] = {}
    for event in run.events:
        if isinstance(event.body, AnswerDelta):
            found |= {source.id: source for source in event.body.sources}
    return tuple(found[number] for number in sorted(found))


def _failure_of(failed: Sequence[Verdict]) -> TailorHallucinationError:
    first = failed[0]
    return TailorHallucinationError(
        f"nothing of the answer rests on the documents ({len(failed)} sentences failed; the first: {first.problem})",
        agent_id="tailor",
        sentences=len(failed),
    )


def _told_in_json(text: str) -> str:
    """The sentences of a reply that came as JSON, although plain ones were asked for; the text itself otherwise."""
    bare = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        value: JsonValue = json.loads(bare)
    except ValueError:
        return text
    return "\n\n".join(_leaves(value))


def _leaves(value: JsonValue) -> list[str]:
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in _leaves(one)]
    if isinstance(value, list):
        return [leaf for one in value for leaf in _leaves(one)]
    return [value] if isinstance(value, str) and " " in value else []
