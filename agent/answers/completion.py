"""`CompletionWriter`: the step that writes the answer, streamed, on the plan's tier.

Without a model, or if the model fails before any text, rules compose the answer from the results.
"""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from agent.answers.additions import list_missing_changes
from agent.answers.answer_without_model import answer_without_results
from agent.answers.completion_prompt import CompletionPrompt, Results
from agent.answers.composed_answers import compose_failures, compose_results
from agent.answers.held_writer import HeldWriter
from agent.answers.loops import end_loops
from agent.answers.schema_form import SchemaForm
from agent.answers.structured_answer import read_json_answer, wants_json
from agent.answers.unwrapping import MarkdownFence, StrayCalls, TextFilter, read_answer
from agent.core.errors import ModelContextError, ModelError, ModelOutputError
from agent.core.events import AnswerStarted, FinishReason, Purpose, StepOutput
from agent.core.models import JsonObject, PlanStep, Tier
from agent.core.plan_outcome import EMPTY_REPLIES, is_router_replaced
from agent.core.run_state import StepResult
from agent.llm.port import ModelReply, read_end
from agent.llm.replies import drop_foreign_calls
from agent.llm.streamed_reply import to_openai_call
from agent.run_context.answer_stream import DeltaWriter
from agent.run_context.conversation import (
    count_fitting_messages,
    find_context_tokens,
    remove_instructions,
    split_at_prompt,
    take_newest_messages,
)
from agent.run_context.evidence_answers import EvidenceWriter
from agent.run_context.model_calls import MeteredModels, ModelCall
from agent.run_context.outputs import (
    list_pictures,
    list_results,
    number_sources,
)
from agent.run_context.run import Run

LEFT_OUT = "; earlier messages are left out, because the model's context does not hold them"
"""Ends the reason of an answer whose prompt was shortened."""
LEAST_CONTEXT_TOKENS = 4_096
"""The context from which on the examples of answers leave enough for a conversation and results."""
REFUSED_IN_VAIN = "the model found no answer in the passages that were found"


class _ByRules(NamedTuple):
    """Why rules compose an answer."""

    reason: str
    is_fallback: bool = True
    """Whether the operator would have had a model answer."""


class CompletionWriter:
    """Executes one attempt of a completion step."""

    def __init__(
        self, run: Run, step: PlanStep, attempt: int, has_evidence: Callable[[str], bool] | None = None
    ) -> None:
        """`has_evidence` says of the beginning of an answer whether it may be shown before the whole is judged."""
        self._has_evidence = has_evidence
        self._run = run
        self._step = step
        self._attempt = attempt
        self._evidence_writer: EvidenceWriter | None = None
        self._models = MeteredModels(run, step.id, attempt)
        self._history_limit = self._count_fitting_messages()

    async def write(self, feedback: str | None) -> StepOutput:
        """The answer.

        Raises `ModelOutputError` for a broken stream, which is judged RETRY. Raises every `ModelError` if there is no
        result to fall back on: a plain question without a model call has no answer.
        """
        results = await self._collect_results()
        self._evidence_writer = self._prepare_evidence(results.outcomes)
        rules = self._choose_rules(results)
        if rules is not None:
            output = await self._compose_by_rules(results, rules.reason)
            return output if rules.is_fallback else output.model_copy(update={"fallback_reason": None})
        failures = compose_failures(self._run, results.outcomes) if self._run.profile.decides == "rounds" else ""
        if failures:
            # From errors alone a small model makes up what it was to find out, and reports what it was to do.
            return await self._make_rules_output(failures, results, "every call failed")
        try:
            if self._evidence_writer is not None:
                return await self._write_from_passages(self._evidence_writer, feedback, tainted=results.tainted)
            reply = await self._answer_in_context(results, feedback)
        except ModelError as error:
            first_break = isinstance(error, ModelOutputError) and self._attempt == 1
            if first_break or not results.outcomes:
                raise
            return await self._compose_by_rules(results, error.message)
        return await self._take_reply(reply, results)

    async def _collect_results(self) -> Results:
        state = self._run.state
        outcomes = await list_results(self._run)
        recalled = state.retrieval.items if state.retrieval else ()
        tainted = state.has_outside_text or any(output.tainted for _, output in outcomes)
        tainted = tainted or any(item.tainted for item in recalled)
        return Results(outcomes, number_sources(outcomes), tainted)

    def _choose_rules(self, results: Results) -> _ByRules | None:
        """Why rules compose the answer; None if a model writes it."""
        run = self._run
        if _is_command(run):
            return _ByRules("an exact command needs no model")
        if run.engine.settings.executor_mode == "rules":
            return _ByRules("AGENT_PLANNER_MODE is rules", is_fallback=False)
        if not run.has_model:
            return _ByRules("no model is configured", is_fallback=not run.is_rules_mode)
        if run.room.knowledge and results.outcomes and not results.sources:
            # Without a passage no model is asked: it would answer from its own knowledge.
            return _ByRules("the documents say nothing about it")
        return None

    async def _take_reply(self, reply: ModelReply, results: Results) -> StepOutput:
        """The output of a reply; by rules for an empty one that need not be asked for again."""
        reply = drop_foreign_calls(reply, self._offered_tools)
        is_empty = not reply.text.strip() and not reply.tool_calls
        finish, interruption = read_end(reply.finish_reason)
        if is_empty and interruption:
            finish, interruption = "stop", ""  # it is asked for again, like any empty reply
        if is_empty and results.outcomes and (finish != "stop" or self._attempt > 1):
            composed = await self._compose_by_rules(results, EMPTY_REPLIES[finish])
            return composed.model_copy(update={"finish_reason": finish})
        output = await self._make_output(reply, results, finish)
        return output.model_copy(update={"interruption": interruption}) if interruption else output

    @property
    def _offered_tools(self) -> tuple[JsonObject, ...]:
        return () if self._run.room.planning else self._run.state.request.client_tools

    @cached_property
    def _schema_form(self) -> SchemaForm:
        """The JSON schema that an answer from evidence has to have, if the request wants one."""
        return SchemaForm(self._models, self._run.state.question, self._run.state.request.options)

    def _prepare_evidence(self, outcomes: list[StepResult]) -> EvidenceWriter | None:
        """The writer of an answer from evidence; None for a plain completion."""
        evidence = self._run.engine.extensions.evidence_answers
        if evidence is None or not outcomes or not evidence.rooms.matches(self._run.room):
            return None
        early = not self._schema_form.is_requested
        return evidence.prepare(self._run, self._step, self._attempt, outcomes, shows_early=early)

    async def _make_output(self, reply: ModelReply, results: Results, finish: FinishReason) -> StepOutput:
        """A model's reply as the step's output."""
        text = reply.text
        if self._is_structured and not reply.refused:
            text, _ = await read_json_answer(text, self._run.state.request.options)
        calls = [to_openai_call(call.id, call.name, call.arguments, call.extra) for call in reply.tool_calls]
        value: JsonObject | str = {"text": text, "tool_calls": [*calls]} if calls else text
        return StepOutput(
            value=value,
            text=text or ("[the client's tools were called]" if calls else ""),
            tainted=results.tainted,
            sources=results.sources,
            finish_reason=finish,
            refused=reply.refused,
            provider_fields=reply.provider_fields,
        )

    async def _answer_in_context(self, results: Results, feedback: str | None) -> ModelReply:
        """The answer, with as much of the conversation as the model's context holds, rather than with examples."""
        if self._run.profile.decides == "rounds":
            from agent.answers.list_selections import select_in_lists  # noqa: PLC0415 - only small models need it

            await select_in_lists(self._run, results.outcomes)
        prompt = CompletionPrompt(self._run, results, is_structured=self._is_structured)
        if not self._has_room_for_examples():
            prompt.leave_out_examples()
        while True:
            try:
                return await self._stream_answer(prompt, results, feedback)
            except ModelContextError:
                if prompt.shows_examples:
                    prompt.leave_out_examples()
                elif self._run.room.planning and self._count_earlier_messages():
                    self._history_limit = self._count_earlier_messages() // 2
                else:
                    raise

    def _has_room_for_examples(self) -> bool:
        context = find_context_tokens(self._run, self._choose_tier())
        return context is None or context >= LEAST_CONTEXT_TOKENS

    def _count_fitting_messages(self) -> int:
        """How many earlier messages fit the model's context. A room that does not plan passes all on."""
        spoken = remove_instructions(split_at_prompt(self._run.state)[0])
        if not self._run.room.planning:
            return len(spoken)
        return count_fitting_messages(self._run, spoken, tier=self._choose_tier())

    def _count_earlier_messages(self) -> int:
        """How many earlier messages the prompt holds."""
        before, _ = split_at_prompt(self._run.state)
        return len(take_newest_messages(remove_instructions(before), self._history_limit))

    async def _stream_answer(self, prompt: CompletionPrompt, results: Results, feedback: str | None) -> ModelReply:
        run, tier = self._run, self._choose_tier()
        messages = prompt.build(self._history_limit, feedback)
        model, again = run.engine.models.get_model_name(tier, run.room), run.state.answer_start is not None
        left_out = len(remove_instructions(split_at_prompt(run.state)[0])) - self._count_earlier_messages()
        reason = self._describe_tier(tier) + (LEFT_OUT if left_out else "")
        started = AnswerStarted(tier=tier, model=model, reason=reason, restarted=again, left_out=left_out)
        await run.note(started, step_id=self._step.id, attempt=self._attempt)
        purpose: Purpose = "task" if _is_task(run) else "completion"
        limit = run.state.request.max_tokens
        stream = self._models.stream(
            ModelCall(purpose, messages, tier=tier, tools=self._offered_tools, max_tokens=limit)
        )
        # An answer that needs translation, a check as a whole or a first sentence of ours is not streamed.
        translated = run.state.understanding is not None and run.state.understanding.translated
        preceded = is_router_replaced(run.state) or bool(list_missing_changes(run))
        quiet = translated or run.room.guard_output.requires_whole_answer or preceded or self._is_structured
        deltas = None if quiet else DeltaWriter(run, self._step.id, self._attempt)
        writer = HeldWriter(deltas, self._has_evidence) if deltas and self._has_evidence else deltas
        pictures = {} if self._is_structured else list_pictures(results.outcomes, run.run_id)
        if run.profile.decides == "rounds":
            stream = end_loops(stream)
        tools = run.allowed_tools

        def build_filters() -> tuple[TextFilter, ...]:
            stray = StrayCalls(tools, takes_any=bool(results.outcomes))
            return (stray, MarkdownFence()) if run.room.planning else ()

        return await read_answer(stream, writer, pictures, build_filters=build_filters)

    async def _write_from_passages(self, writer: EvidenceWriter, feedback: str | None, *, tainted: bool) -> StepOutput:
        tier = self._choose_tier()
        answer = await writer.write(feedback, tier, self._describe_tier(tier), tainted=tainted)
        if self._is_refused_in_vain(writer, answer):
            answer = await writer.quote_passages(REFUSED_IN_VAIN, tainted=tainted)
        return await self._schema_form.apply(answer, tier)

    def _is_refused_in_vain(self, writer: EvidenceWriter, answer: StepOutput) -> bool:
        """Whether a small model cites nothing though the answer is made from passages alone: the retriever
        knows better what they hold, and quotes nothing where it is not certain itself."""
        cited = answer.tailored is not None and bool(answer.tailored.citations)
        return self._run.profile.decides == "rounds" and writer.is_extractive and not cited

    @property
    def _is_structured(self) -> bool:
        """Whether the answer is JSON that is compared with its schema before anybody reads it."""
        options = self._run.state.request.options
        return self._run.room.planning and "response_format" in options and wants_json(options)

    async def _compose_by_rules(self, results: Results, reason: str) -> StepOutput:
        if self._evidence_writer is not None and self._evidence_writer.is_extractive:
            quoted = await self._evidence_writer.quote_passages(reason, tainted=results.tainted)
            return await self._schema_form.apply(quoted, None)
        selected = self._select_results(results.outcomes)
        text = compose_results(selected, self._run) if selected else answer_without_results(self._run)
        return await self._make_rules_output(text, results, reason)

    async def _make_rules_output(self, text: str, results: Results, reason: str) -> StepOutput:
        restarted = self._run.state.answer_start is not None
        started = AnswerStarted(tier=None, model=None, reason=f"composed by rule: {reason}", restarted=restarted)
        await self._run.note(started, step_id=self._step.id, attempt=self._attempt)
        return StepOutput(
            value=text,
            text=text,
            tainted=results.tainted,
            sources=results.sources,
            effective="rules",
            fallback_reason=reason,
        )

    def _select_results(self, outcomes: list[StepResult]) -> list[StepResult]:
        """The results for an answer by rules. In a room with required tools, omits those that other steps used."""
        used = {name for step in self._run.state.plan_steps if step.is_work for name in step.depends_on}
        unused = [(step, output) for step, output in outcomes if step.id not in used]
        return unused if self._run.room.required_tools and unused else outcomes

    def _choose_tier(self) -> Tier:
        """The tier of the answer. A room's "high" holds whatever the plan asks for."""
        if _is_task(self._run):
            return "fast"
        return "high" if self._run.room.answer_tier == "high" else self._step.tier or "fast"

    def _describe_tier(self, tier: Tier) -> str:
        if _is_task(self._run):
            return "a background prompt of the client goes to the fast tier"
        if self._step.tier is not None and self._run.room.answer_tier != "high":
            return f"the plan asks for the {tier} tier"
        return f"the room answers on the {tier} tier"


def _is_command(run: Run) -> bool:
    """Whether the command's result is the answer; False if the caller requests another format."""
    route = run.state.understanding.route if run.state.understanding is not None else None
    return route == "command" and "response_format" not in run.state.request.options


def _is_task(run: Run) -> bool:
    return run.state.understanding is not None and run.state.understanding.route == "task"
