"""Builds the final answer, complete or partial, with its sources, citations and uncertainties."""

import json

from agent.answers.additions import (
    add_memory_sentence,
    add_shown_results,
    add_unmade_changes,
    find_undecided_reason,
    list_missing_changes,
    list_orders_left_out,
)
from agent.answers.change_outcomes import add_change_outcomes
from agent.answers.composed_answers import (
    compose_partial_answer,
    compose_results,
    describe_stop_reason,
    has_several_intents,
    list_failed_changes,
    list_intent_outcomes,
)
from agent.answers.figure_marks import mark_figures
from agent.answers.loops import end_looping_answer
from agent.answers.sentences import say
from agent.core.events import AnswerDelta, AnswerFinished, AnswerStarted, ClientToolCall, StepOutput
from agent.core.models import Citation, JsonObject, Outcome, PlanStep, Source, TailorOutput, Uncertainty
from agent.core.plan_outcome import (
    find_failure_reason,
    find_interruption,
    find_refusal_of_plan,
    is_answer_step,
    is_complete,
    is_router_replaced,
    list_abandoned_steps,
    list_cut_answers,
    list_cut_texts,
    list_undone,
)
from agent.core.run_state import RunState, StepState
from agent.llm.port import describe_interruption
from agent.planning.open_parts import list_changes_together
from agent.run_context.outputs import list_results, load_output, number_sources, parse_cited_ids
from agent.run_context.run import Run
from agent.text.language import ENGLISH, get_language_name
from agent.text.repetition import find_loop

CUT = "the text of {} is incomplete: the model was cut off by a token limit, a filter or its endpoint"


def is_successful(state: RunState) -> bool:
    """Whether the plan is complete, every gate passed, and nobody stopped the run."""
    return is_complete(state) and all(gate.passed for gate in state.gates) and state.cancel_request is None


def list_unexplained_figures(state: RunState) -> tuple[str, ...]:
    """The figures of the answer, as written, that are not derivable from its results."""
    last = [state.get_step(step.id).last for step in state.plan_steps if is_answer_step(state, step)]
    return tuple(dict.fromkeys(figure for one in last if one is not None for figure in one.unexplained_figures))


def find_misfit(state: RunState) -> str:
    """Describes how the answer misses the form that the request asks for; "" if it fits."""
    last = [state.get_step(step.id).last for step in state.plan_steps if step.is_completion]
    return next((one.misfit for one in last if one is not None and one.misfit), "")


async def build_final_answer(run: Run) -> AnswerFinished:
    """The answer with sources, citations and uncertainties; translated if the log holds a translation.

    What people must see as it is, such as generated code, is added last: no translation changes it.
    """
    drafted = await _build_translated_answer(run)
    if drafted.tool_calls or drafted.stopped or "response_format" in run.state.request.options:
        return drafted
    text = await add_shown_results(run, drafted.text)
    for hooks in run.hooks:
        missing = [sentence for sentence in await hooks.list_caveats(run) if sentence not in text]
        text = "\n\n".join((text, *missing))
    doubts = (*drafted.uncertainties, *await list_orders_left_out(run))
    return drafted.change(text=text, uncertainties=doubts)


async def _build_translated_answer(run: Run) -> AnswerFinished:
    question = run.state.input_request
    if question is not None and run.state.cancel_request is None:
        drafted = AnswerFinished(text=question.question)
    elif run.state.client_calls is not None and run.state.cancel_request is None:
        calls = tuple(map(_format_client_call, run.state.client_calls.calls))
        return AnswerFinished(text="", finish_reason="tool_calls", tool_calls=calls)
    else:
        drafted = await (_build_complete_answer(run) if is_successful(run.state) else _build_partial_answer(run))
    translated = run.state.translation
    if translated is None or translated.text is None:
        return drafted
    tailored = drafted.tailored
    if tailored is not None:
        tailored = tailored.model_copy(update={"content": translated.text})
    citations = _build_citations(translated.text, drafted.sources, tailored)
    return drafted.model_copy(update={"text": translated.text, "citations": citations, "tailored": tailored})


def _format_client_call(call: ClientToolCall) -> JsonObject:
    """The call in OpenAI's form."""
    function: JsonObject = {"name": call.tool, "arguments": json.dumps(call.args, ensure_ascii=False)}
    return {"id": call.call_id, "type": "function", "function": function}


async def _build_complete_answer(run: Run) -> AnswerFinished:
    answer = await assemble_answer(run)
    calls: tuple[JsonObject, ...] = ()
    text = answer.text
    called = answer.value.get("tool_calls") if isinstance(answer.value, dict) else None
    if isinstance(answer.value, dict) and isinstance(called, list):
        calls = tuple(call for call in called if isinstance(call, dict))
        text = str(answer.value.get("text") or "")
    if "response_format" not in run.state.request.options:  # no sentence is added to JSON
        text = _add_sentences(run, text, by_rules=answer.effective == "rules")
    return AnswerFinished(
        text=text,
        finish_reason="tool_calls" if calls else answer.finish_reason,
        sources=answer.sources,
        citations=_build_citations(text, answer.sources, answer.tailored),
        uncertainties=_collect_uncertainties(run.state),
        tool_calls=calls,
        fallback_reason=answer.fallback_reason,
        tailored=answer.tailored,
        refused=answer.refused,
        provider_fields=answer.provider_fields,
    )


def _add_sentences(run: Run, text: str, *, by_rules: bool) -> str:
    """The answer with what readers must know of it: which figures nothing explains, and that nothing was changed."""
    if not by_rules and is_router_replaced(run.state) and (undone := list_undone(run.state)):
        return f"{undone[0][:1].upper()}{undone[0][1:]}. {say('model_wrote', ENGLISH)}\n\n{text}"
    understood = run.state.understanding
    # The marks are added before the translation.
    language = understood.language if understood is not None and not understood.translate_answer else ENGLISH
    if ends_in_loop(run.state):
        text = end_looping_answer(text, language, was_streamed=_was_streamed(run))
    if figures := list_unexplained_figures(run.state):
        text = mark_figures(text, figures, language, inline=not _was_streamed(run))
    if list_missing_changes(run):
        may_claim = not by_rules and not _was_streamed(run)
        text = add_unmade_changes(text, language, list_failed_changes(run), may_claim=may_claim)
        return _add_outcomes(text, run.state, language)
    text = _add_outcomes(text, run.state, language)
    is_checked = run.decides_in_rounds or bool(find_refusal_of_plan(run.state))
    undecided = find_undecided_reason(run.state) if is_checked else ""
    return add_memory_sentence(text, language, undecided) if undecided else text


def _add_outcomes(text: str, state: RunState, language: str) -> str:
    return add_change_outcomes(text, state, language) if list_changes_together(state) else text


async def _build_partial_answer(run: Run) -> AnswerFinished:
    """The known results, the missing ones and the reason, after the answer if that failed its gates. Of an
    answer that a person stopped, returns what had been written.
    """
    if (written := await _find_stopped_text(run)) is not None:
        return written
    text = await compose_partial_answer(run)
    answer = await assemble_answer(run) if is_complete(run.state) else None
    if answer is not None and answer.text.strip():
        text = f"{answer.text}\n\n---\nThis answer did not pass every check: {describe_stop_reason(run)}."
    text = _add_outcomes(text, run.state, ENGLISH)
    sources = answer.sources if answer else number_sources(await list_results(run))
    return AnswerFinished(
        text=text,
        sources=sources,
        citations=_build_citations(text, sources),
        uncertainties=_collect_uncertainties(run.state),
    )


async def _find_stopped_text(run: Run) -> AnswerFinished | None:
    """The part of the answer that readers had seen when they stopped it, with its sources; None if there was none."""
    cancelled = run.state.cancel_request
    if cancelled is None or cancelled.by != "caller":
        return None
    text, sources = "", dict[int, Source]()
    for event in run.events:
        match event.body:
            case AnswerStarted():
                text, sources = "", {}
            case AnswerDelta(kind="text", text=piece, sources=cited):
                text += piece
                sources |= {source.id: source for source in cited}
    if not text.strip():
        return None
    numbered = tuple(sources[number] for number in sorted(sources)) or number_sources(await list_results(run))
    return AnswerFinished(
        text=text.rstrip(),
        sources=numbered,
        citations=_build_citations(text, numbered),
        uncertainties=_collect_uncertainties(run.state),
        stopped=True,
    )


def _collect_uncertainties(state: RunState) -> tuple[Uncertainty, ...]:
    """The uncertainties of a run: side effects of unknown outcome, fallbacks, searches without hits,
    unexplained figures, abandoned steps, and replies without effect.
    """
    doubts: list[Uncertainty] = (
        _list_translation_fallbacks(state) + _list_unresolved_doubts(state) + _list_ignored_replies(state)
    )
    if state.answer_start is not None and (count := state.answer_start.left_out):
        message = f"the answer does not consider the first {count:,} messages of the conversation: they did not fit"
        doubts.append(Uncertainty(level="notable", message=message))
    if state.unread_tokens:
        message = (
            f"the model's server left out about {state.unread_tokens:,} tokens of a prompt, so the answer may lack "
            "what was said first; start it with a larger context (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx)"
        )
        doubts.append(Uncertainty(level="notable", message=message))
    if is_successful(state):  # a partial answer names its missing steps itself
        doubts += [
            Uncertainty(
                level="notable",
                message=(
                    f"given up: {step.intent or step.title} ({step.title} failed: {find_failure_reason(state, step)})"
                ),
                step_id=step.id,
            )
            for step in list_abandoned_steps(state)
            if not _list_unknown_outcomes(state.get_step(step.id))  # reported below
        ]
    doubts += [
        Uncertainty(level="notable", message=CUT.format(step.title), step_id=step.id) for step in list_cut_texts(state)
    ]
    if interruption := find_interruption(state):
        doubts.append(Uncertainty(level="notable", message=describe_interruption(interruption)))
    for step_id, step in state.steps.items():
        for message in _list_unknown_outcomes(step):
            doubts.append(Uncertainty(level="blocking", message=message, step_id=step_id))
        for attempt in step.attempts:
            doubts += [
                Uncertainty(
                    level="blocking",
                    message=f"{call.intent.tool} was interrupted; whether it happened is unknown",
                    step_id=step_id,
                )
                for call in attempt.calls
                if call.result is None and call.unknown_outcome is None and call.intent.effect == "effect"
            ]
            verdict = attempt.verdict
            if verdict is not None and verdict.outcome is Outcome.SUCCESS and verdict.evidence == "none":
                doubts.append(Uncertainty(level="info", message=verdict.reason, step_id=step_id))
            if attempt.output is not None and attempt.output.fallback_reason and attempt.verdict is not None:
                doubts.append(Uncertainty(level="notable", message=attempt.output.fallback_reason, step_id=step_id))
    return tuple(doubts)


def _list_unknown_outcomes(step: StepState) -> list[str]:
    """A message for each call of the step that may have changed something and whose result never came."""
    messages: list[str] = []
    for call in (call for attempt in step.attempts for call in attempt.calls):
        if call.unknown_outcome is not None:
            messages.append(call.unknown_outcome.message)
        elif call.result is not None and call.result.error_code == "ERR_TOOL_UNKNOWN_OUTCOME":
            messages.append(f"{call.intent.tool}: {call.result.error}")
    return messages


def _build_citations(
    text: str, sources: tuple[Source, ...], tailored: TailorOutput | None = None
) -> tuple[Citation, ...]:
    """The citations of a text, with the quoted words if they are known, else with the source's first quote."""
    if tailored is not None:
        cited = set(parse_cited_ids(text))
        return tuple(
            Citation(
                source_id=one.number,
                quote=one.text_snippet,
                location=f"page {one.page}" if one.page is not None else "",
                evidence=one,
            )
            for one in tailored.citations
            if one.number in cited or not cited  # JSON values hold no citation marks
        )
    by_id = {source.id: source for source in sources}
    return tuple(
        Citation(source_id=number, quote=by_id[number].quotes[0] if by_id[number].quotes else "")
        for number in parse_cited_ids(text)
        if number in by_id
    )


def _was_streamed(run: Run) -> bool:
    """Whether the text of the answer was streamed to a reader."""
    is_visible = False
    for event in run.events:
        match event.body:
            case AnswerStarted():
                is_visible = False
            case AnswerDelta(kind="text"):
                is_visible = True
    return is_visible and run.follower_count > 0


def _list_unresolved_doubts(state: RunState) -> list[Uncertainty]:
    """The doubts of rules that no judge resolved, and the steps that no judge could check."""
    doubts: list[Uncertainty] = []
    for step in state.plan_steps:
        attempt = state.get_step(step.id).last
        if attempt is None:
            continue
        if attempt.rule_doubt:
            holder = "the answer" if is_answer_step(state, step) else f"the result of {step.title}"
            message = f"{holder} holds {attempt.rule_doubt}"
            if attempt.misfit:
                message = f"the answer is not in the form that the request asks for: {attempt.misfit}"
            doubts.append(Uncertainty(level="notable", message=message, step_id=step.id))
        if attempt.judge_error:
            message = f"the result of {step.title} was checked by rules only: {attempt.judge_error}"
            doubts.append(Uncertainty(level="info", message=message, step_id=step.id))
    return doubts


def _list_ignored_replies(state: RunState) -> list[Uncertainty]:
    """The replies to a plan that rules then replaced, because rules cannot interpret replies."""
    doubts = []
    for number, request in enumerate(state.approvals, start=1):
        decided = state.decisions.get(request.approval_id)
        if (
            number == len(state.approvals)
            or request.call_id is not None
            or decided is None
            or decided.decision != "answered"
        ):
            continue
        following = next((one for one in state.plans if one.plan.version > request.plan_version), None)
        if following is None or following.effective == "rules":
            message = f'the reply to the plan had no effect, because no model planned again: "{decided.reason}"'
            doubts.append(Uncertainty(level="notable", message=message))
    return doubts


def _list_translation_fallbacks(state: RunState) -> list[Uncertainty]:
    """The failed translations and their reasons."""
    understood, translated = state.understanding, state.translation
    fallbacks = []
    if understood is not None and understood.fallback_reason is not None:
        language = get_language_name(understood.language)
        why = f"the request ({language}) was not translated: {understood.fallback_reason}"
        fallbacks.append(Uncertainty(level="notable", message=why))
    if translated is not None and translated.fallback_reason is not None:
        language = get_language_name(translated.language)
        why = f"the answer could not be translated into {language}: {translated.fallback_reason}"
        fallbacks.append(Uncertainty(level="notable", message=why))
    return fallbacks


async def assemble_answer(run: Run) -> StepOutput:
    """The answer as an output: its text, the cited sources, its taint and its mode."""
    plan = run.state.plan
    if plan is None:
        return StepOutput()
    for step in reversed(plan.steps):
        output = run.state.get_step(step.id).output
        if step.is_completion and output is not None:
            return await load_output(run, output)
    outcomes = await list_results(run)
    # Each request of a message to the studio is answered, also those whose results others use.
    whole = run.state.classified is not None and run.state.classified.task_plan is not None
    last = [(step, output) for step, output in outcomes if whole or not _is_dependency(step, plan.steps)]
    undone = has_several_intents(run) and list_undone(run.state)
    text = list_intent_outcomes(run, outcomes) if undone else compose_results(last, run) if last else ""
    return StepOutput(
        text=text,
        finish_reason=next((output.finish_reason for _, output in last if output.finish_reason != "stop"), "stop"),
        tainted=any(output.tainted for _, output in outcomes),
        sources=number_sources(outcomes),
        effective="rules" if all(output.effective == "rules" for _, output in outcomes) else "llm",
        fallback_reason=next((o.fallback_reason for _, o in outcomes if o.fallback_reason), None),
    )


def _is_dependency(step: PlanStep, steps: tuple[PlanStep, ...]) -> bool:
    return any(step.id in other.depends_on for other in steps)


def ends_in_loop(state: RunState) -> bool:
    """Whether an answer of a model was cut off in a loop."""
    return any(find_loop(text) >= 0 for text in list_cut_answers(state))
