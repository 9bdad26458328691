"""`CompletionWriter`: the step that writes the answer, streamed, on the plan's tier.

Without a model, or if the model fails before any text, rules compose the answer from the results.
"""

from collections.abc import Callable
from functools import cached_property

from agent.answers.answer_without_model import answer_without_results, compose_results, describe_failures
from agent.answers.held_writer import HeldWriter
from agent.answers.loops import end_loops
from agent.answers.schema_form import SchemaForm
from agent.answers.structured_answer import read_json_answer, wants_json
from agent.answers.unwrapping import read_answer
from agent.core.errors import ModelContextError, ModelError, ModelOutputError
from agent.core.events import AnswerStarted, FinishReason, Purpose, StepOutput
from agent.core.models import ChatMessage, JsonObject, PlanStep, Source, Tier
from agent.core.plan_outcome import EMPTY_REPLIES, find_refusal_of_plan, is_router_replaced, list_abandoned_steps
from agent.llm.port import ModelReply, read_end
from agent.llm.prompts import format_block, quote_inline, render
from agent.llm.replies import drop_foreign_calls
from agent.llm.streamed_reply import to_openai_call
from agent.run_context.answer_stream import DeltaWriter
from agent.run_context.conversation import (
    build_instructions,
    count_fitting_messages,
    remove_instructions,
    split_at_prompt,
    take_newest_messages,
)
from agent.run_context.evidence_answers import EvidenceWriter
from agent.run_context.model_calls import MeteredModels
from agent.run_context.outputs import (
    SKILL_CHARS,
    build_result_blocks,
    format_data_block,
    leave_out_looks,
    list_pictures,
    list_results,
    number_sources,
)
from agent.run_context.run import Run
from agent.text.language import ENGLISH, get_language_name

LEFT_OUT = "; earlier messages are left out, because the model's context does not hold them"
"""Ends the reason of an answer whose prompt was shortened."""
FAILED_STEPS_RULE = "- What stands inside <failed> blocks could not be found out: say so, and do not fill it in."
CITATION_RULE = (
    "- Cite sources as [n] right after what they support; but put no [n] into a text that is to be used elsewhere, "
    "such as a mail, a message or the content of a file."
)
REFUSED_IN_VAIN = "the model found no answer in the passages that were found"
MEMORY_CHARS = 4_000
"""Characters of memories in a completion's prompt."""


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
        outcomes = await list_results(self._run)
        sources = number_sources(outcomes)
        recalled = self._run.state.retrieval.items if self._run.state.retrieval else ()
        tainted = self._run.state.has_outside_text or any(output.tainted for _, output in outcomes)
        tainted = tainted or any(item.tainted for item in recalled)
        self._evidence_writer = self._prepare_evidence(outcomes)
        if _is_command(self._run):
            return await self._compose_by_rules(outcomes, sources, "an exact command needs no model", tainted=tainted)
        if self._run.engine.settings.executor_mode == "rules":  # the operator chose rules, so this is no fallback
            output = await self._compose_by_rules(outcomes, sources, "AGENT_PLANNER_MODE is rules", tainted=tainted)
            return output.model_copy(update={"fallback_reason": None})
        if not self._run.has_model:
            output = await self._compose_by_rules(outcomes, sources, "no model is configured", tainted=tainted)
            return output.model_copy(update={"fallback_reason": None}) if self._run.is_rules_mode else output
        if self._run.room.knowledge and outcomes and not sources:
            # Without a passage no model is asked: it would answer from its own knowledge.
            return await self._compose_by_rules(
                outcomes, sources, "the documents say nothing about it", tainted=tainted
            )
        failures = "" if self._run.profile.decides != "rounds" else self._describe_failures(outcomes)
        if failures:
            # From errors alone a small model makes up what it was to find out, and reports what it was to do.
            return await self._make_rules_output(failures, sources, "every call failed", tainted=tainted)
        try:
            if self._evidence_writer is not None:
                return await self._write_from_passages(self._evidence_writer, feedback, tainted=tainted)
            written = await self._answer_in_context(outcomes, sources, feedback)
        except ModelError as error:
            first_break = isinstance(error, ModelOutputError) and self._attempt == 1
            if first_break or not outcomes:
                raise
            return await self._compose_by_rules(outcomes, sources, error.message, tainted=tainted)
        return await self._take_reply(written, outcomes, sources, tainted=tainted)

    def _describe_failures(self, outcomes: list[tuple[PlanStep, StepOutput]]) -> str:
        """The answer if every call failed, but looks at what they were to work on; "" if anything was found out."""
        if leave_out_looks(self._run, outcomes, list_abandoned_steps(self._run.state)):
            return ""
        return describe_failures(self._run, outcomes)

    async def _take_reply(
        self,
        written: ModelReply,
        outcomes: list[tuple[PlanStep, StepOutput]],
        sources: tuple[Source, ...],
        *,
        tainted: bool,
    ) -> StepOutput:
        """The output of a reply; by rules for an empty one that need not be asked for again."""
        written = drop_foreign_calls(written, self._offered_tools)
        is_empty = not written.text.strip() and not written.tool_calls
        finish, interruption = read_end(written.finish_reason)
        if is_empty and interruption:
            finish, interruption = "stop", ""  # it is asked for again, like any empty reply
        if is_empty and outcomes and (finish != "stop" or self._attempt > 1):
            composed = await self._compose_by_rules(outcomes, sources, EMPTY_REPLIES[finish], tainted=tainted)
            return composed.model_copy(update={"finish_reason": finish})
        output = await self._make_output(written, sources, finish, tainted=tainted)
        return output.model_copy(update={"interruption": interruption}) if interruption else output

    @property
    def _offered_tools(self) -> tuple[JsonObject, ...]:
        return () if self._run.room.planning else self._run.state.request.client_tools

    @cached_property
    def _schema_form(self) -> SchemaForm:
        """The JSON schema that an answer from evidence has to have, if the request wants one."""
        return SchemaForm(self._models, self._run.state.question, self._run.state.request.options)

    def _prepare_evidence(self, outcomes: list[tuple[PlanStep, StepOutput]]) -> EvidenceWriter | None:
        """The writer of an answer from evidence; None for a plain completion."""
        evidence = self._run.engine.extensions.evidence_answers
        if evidence is None or not outcomes or not evidence.rooms.matches(self._run.room):
            return None
        early = not self._schema_form.is_requested
        return evidence.prepare(self._run, self._step, self._attempt, outcomes, shows_early=early)

    async def _make_output(
        self, written: ModelReply, sources: tuple[Source, ...], finish: FinishReason, *, tainted: bool
    ) -> StepOutput:
        """A model's reply as the step's output."""
        text = written.text
        if self._is_structured and not written.refused:
            text, _ = await read_json_answer(text, self._run.state.request.options)
        calls = [to_openai_call(call.id, call.name, call.arguments, call.extra) for call in written.tool_calls]
        value: JsonObject | str = {"text": text, "tool_calls": [*calls]} if calls else text
        return StepOutput(
            value=value,
            text=text or ("[the client's tools were called]" if calls else ""),
            tainted=tainted,
            sources=sources,
            finish_reason=finish,
            refused=written.refused,
            provider_fields=written.provider_fields,
        )

    async def _answer_in_context(
        self, outcomes: list[tuple[PlanStep, StepOutput]], sources: tuple[Source, ...], feedback: str | None
    ) -> ModelReply:
        """The answer, with as much of the conversation as the model's context holds."""
        while True:
            try:
                return await self._stream_answer(outcomes, sources, feedback)
            except ModelContextError:
                if not self._run.room.planning or not self._count_earlier_messages():
                    raise
                self._history_limit = self._count_earlier_messages() // 2

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

    async def _stream_answer(
        self, outcomes: list[tuple[PlanStep, StepOutput]], sources: tuple[Source, ...], feedback: str | None
    ) -> ModelReply:
        run, tier = self._run, self._choose_tier()
        messages = self._build_messages(outcomes, sources, feedback)
        model, again = run.engine.models.get_model_name(tier, run.room), run.state.answer_start is not None
        left_out = len(remove_instructions(split_at_prompt(run.state)[0])) - self._count_earlier_messages()
        reason = self._describe_tier(tier) + (LEFT_OUT if left_out else "")
        started = AnswerStarted(tier=tier, model=model, reason=reason, restarted=again, left_out=left_out)
        await run.note(started, step_id=self._step.id, attempt=self._attempt)
        purpose: Purpose = "task" if _is_task(run) else "completion"
        stream = self._models.stream(
            purpose, messages, tier=tier, tools=self._offered_tools, max_tokens=run.state.request.max_tokens
        )
        # An answer that needs translation, a check as a whole or a first sentence of ours is not streamed.
        translated = run.state.understanding is not None and run.state.understanding.translated
        whole = run.room.guard_output.requires_whole_answer or is_router_replaced(run.state)
        quiet = translated or whole or self._is_structured
        deltas = None if quiet else DeltaWriter(run, self._step.id, self._attempt)
        writer = HeldWriter(deltas, self._has_evidence) if deltas and self._has_evidence else deltas
        pictures = {} if self._is_structured else list_pictures(outcomes, run.run_id)
        if run.profile.decides == "rounds":
            stream = end_loops(stream)
        return await read_answer(stream, writer, pictures, is_fenced=run.room.planning)

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

    async def _compose_by_rules(
        self,
        outcomes: list[tuple[PlanStep, StepOutput]],
        sources: tuple[Source, ...],
        reason: str,
        *,
        tainted: bool,
    ) -> StepOutput:
        if self._evidence_writer is not None and self._evidence_writer.is_extractive:
            quoted = await self._evidence_writer.quote_passages(reason, tainted=tainted)
            return await self._schema_form.apply(quoted, None)
        text = (
            compose_results(self._list_shown_results(outcomes), self._run)
            if outcomes
            else answer_without_results(self._run)
        )
        return await self._make_rules_output(text, sources, reason, tainted=tainted)

    async def _make_rules_output(
        self, text: str, sources: tuple[Source, ...], reason: str, *, tainted: bool
    ) -> StepOutput:
        restarted = self._run.state.answer_start is not None
        started = AnswerStarted(tier=None, model=None, reason=f"composed by rule: {reason}", restarted=restarted)
        await self._run.note(started, step_id=self._step.id, attempt=self._attempt)
        return StepOutput(
            value=text, text=text, tainted=tainted, sources=sources, effective="rules", fallback_reason=reason
        )

    def _list_shown_results(self, outcomes: list[tuple[PlanStep, StepOutput]]) -> list[tuple[PlanStep, StepOutput]]:
        """The results for an answer by rules. In a room with required tools, omits those that other steps
        used.
        """
        used = {name for step in self._run.state.plan_steps if step.is_work for name in step.depends_on}
        unused = [(step, output) for step, output in outcomes if step.id not in used]
        return unused if self._run.room.required_tools and unused else outcomes

    def _build_messages(
        self, outcomes: list[tuple[PlanStep, StepOutput]], sources: tuple[Source, ...], feedback: str | None
    ) -> tuple[JsonObject, ...]:
        """The messages: trusted text in the system message, the request and each result in its own block."""
        run = self._run
        before, after = split_at_prompt(run.state)
        system = self._build_system_prompt(outcomes, (*before, *after), cites=self._cites(sources))
        messages: list[JsonObject] = [{"role": "system", "content": system}] if system else []
        spoken = remove_instructions(before)
        messages += [message.to_openai() for message in take_newest_messages(spoken, self._history_limit)]
        question = run.state.question
        failed = list_abandoned_steps(run.state)
        refused = _build_refusal_blocks(run)
        if outcomes or failed or refused:
            blocks = [*build_result_blocks(run, outcomes, failed), *refused]
            if self._cites(sources):  # their names are of pages and files
                blocks.append(format_data_block("sources", _list_sources(sources), limit=SKILL_CHARS))
            # The question stands last: a small model answers what it has read last.
            question = "\n".join((*blocks, format_data_block("user_request", question, limit=SKILL_CHARS)))
        earlier = run.state.retrieval.earlier_results if run.state.retrieval else ()
        data_blocks = [
            format_data_block("earlier_results", one.text, limit=SKILL_CHARS, tool=one.tool, intent=one.intent)
            for one in earlier
        ]
        question = "\n".join((*data_blocks, question))
        memories = run.state.retrieval.items if run.state.retrieval else ()
        if memories:
            remembered = "\n".join(f"- {item.text}" for item in memories)
            question = format_data_block("memory", remembered, limit=MEMORY_CHARS) + "\n" + question
        if feedback:
            question += f"\n\nAn earlier answer was not accepted:\n{format_block('feedback', feedback)}"
        request = run.state.request
        if question or request.images or not messages:  # a client may send instructions without a question
            user_message = ChatMessage(
                role="user", content=question, images=request.images, name=request.prompt_name,
                image_lines=request.place_images(question, run.state.question),
            )  # fmt: skip
            messages.append(user_message.to_openai())
        messages += [message.to_openai() for message in remove_instructions(after)]
        return tuple(messages)

    def _cites(self, sources: tuple[Source, ...]) -> bool:
        """Whether the answer is to cite its sources by their numbers."""
        return bool(sources) and not self._is_structured

    def _describe_language(self) -> str:
        """ ", in German": the language of the answer; "" for English, and for an answer that is translated."""
        request = self._run.state.understanding
        if not self._run.room.planning or request is None or request.translated or request.language == ENGLISH:
            return ""
        return f", in {get_language_name(request.language)}"

    def _build_system_prompt(
        self,
        outcomes: list[tuple[PlanStep, StepOutput]],
        history: tuple[ChatMessage, ...],
        *,
        cites: bool,
    ) -> str:
        """The operator's instructions, followed by the caller's own system messages."""
        room = self._run.room
        operator = build_instructions(self._run, history)
        failed = [*list_abandoned_steps(self._run.state), *_build_refusal_blocks(self._run)]
        earlier = self._run.state.retrieval.earlier_results if self._run.state.retrieval else ()
        if not outcomes and not failed and not earlier:
            # Alone, the request speaks for itself: instructed about its language, a 1.5B model repeats it, and one that
            # asks for a translation names another.
            return "\n\n".join(part for part in (operator, room.persona) if part)
        return render(
            "completion",
            system=operator + "\n\n" if operator else "",
            persona=room.persona + "\n\n" if room.persona else "",
            language=self._describe_language(),
            failed=FAILED_STEPS_RULE + "\n" if failed else "",
            citations=CITATION_RULE if cites else "",
        )

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


def _build_refusal_blocks(run: Run) -> list[str]:
    """A block that says why the calls of the planner were not made; none if they were."""
    reason = find_refusal_of_plan(run.state)
    tools = ", ".join(run.state.plans[-1].refused_calls) if reason else ""
    return [format_data_block("failed", f"not called: {reason}", limit=SKILL_CHARS, tool=tools)] if reason else []


def _list_sources(sources: tuple[Source, ...]) -> str:
    listed = (f"[{source.id}] {source.name}" + (f" {source.url}" if source.url else "") for source in sources)
    return "\n".join(map(quote_inline, listed))


def _is_command(run: Run) -> bool:
    """Whether the command's result is the answer; False if the caller requests another format."""
    route = run.state.understanding.route if run.state.understanding is not None else None
    return route == "command" and "response_format" not in run.state.request.options


def _is_task(run: Run) -> bool:
    return run.state.understanding is not None and run.state.understanding.route == "task"
