"""The answer as it will be given, before it is translated: whole, or honestly partial."""

from agent.core.events import AnswerFinished
from agent.core.fold import RunState
from agent.core.language import name_of
from agent.core.models import Citation, JsonObject, Outcome, Source, TailorOutput, Uncertainty
from agent.execution.answer import answer_of
from agent.execution.compose import partial_answer, stop_reason
from agent.execution.decide import given_up, is_complete, reason_of
from agent.execution.gates import cited_ids
from agent.execution.outputs import number_sources, results
from agent.execution.run import Run


def ended_well(state: RunState) -> bool:
    """Whether the plan was carried out, every gate passed, and nobody stopped the run."""
    return is_complete(state) and all(gate.passed for gate in state.gates) and state.cancel is None


async def draft_answer(run: Run) -> AnswerFinished:
    """The answer with its sources, citations and uncertainties; in the user's language once it was translated."""
    drafted = await (_whole(run) if ended_well(run.state) else _partial(run))
    translated = run.state.translated
    if translated is None or translated.text is None:
        return drafted
    tailored = drafted.tailored
    if tailored is not None:
        tailored = tailored.model_copy(update={"content": translated.text})
    citations = _citations(translated.text, drafted.sources, tailored)
    return drafted.model_copy(update={"text": translated.text, "citations": citations, "tailored": tailored})


async def _whole(run: Run) -> AnswerFinished:
    answer = await answer_of(run)
    calls: tuple[JsonObject, ...] = ()
    text = answer.text
    called = answer.value.get("tool_calls") if isinstance(answer.value, dict) else None
    if isinstance(answer.value, dict) and isinstance(called, list):
        calls = tuple(call for call in called if isinstance(call, dict))
        text = str(answer.value.get("text") or "")
    return AnswerFinished(
        text=text,
        finish_reason="tool_calls" if calls else answer.finish_reason,
        sources=answer.sources,
        citations=_citations(text, answer.sources, answer.tailored),
        uncertainties=_uncertainties(run.state),
        tool_calls=calls,
        fallback_reason=answer.fallback_reason,
        tailored=answer.tailored,
    )


async def _partial(run: Run) -> AnswerFinished:
    """What is known, what is missing and why. An answer that failed its gates is still shown, after the reason."""
    text = await partial_answer(run)
    answer = await answer_of(run) if is_complete(run.state) else None
    if answer is not None and answer.text.strip():
        text = f"{answer.text}\n\n---\nThis answer did not pass every check: {stop_reason(run)}."
    sources = answer.sources if answer else number_sources(await results(run))
    return AnswerFinished(
        text=text, sources=sources, citations=_citations(text, sources), uncertainties=_uncertainties(run.state)
    )


def _uncertainties(state: RunState) -> tuple[Uncertainty, ...]:
    """What the user should know: side effects of unknown outcome, fallbacks, searches that found nothing, figures of
    the answer that nothing bears out, what was given up."""
    found: list[Uncertainty] = _of_languages(state) + _of_answer(state)
    if ended_well(state):  # an answer that is none says so by itself
        found += [
            Uncertainty(
                level="notable",
                message=f"given up: {step.intent or step.title} ({step.title} failed: {reason_of(state, step)})",
                step_id=step.id,
            )
            for step in given_up(state)
        ]
    for step_id, step in state.steps.items():
        for attempt in step.attempts:
            found += [
                Uncertainty(level="blocking", message=call.unknown.message, step_id=step_id)
                for call in attempt.calls
                if call.unknown is not None
            ]
            found += [
                Uncertainty(
                    level="blocking",
                    message=f"{call.called.tool} was interrupted; whether it happened is unknown",
                    step_id=step_id,
                )
                for call in attempt.calls
                if call.returned is None and call.unknown is None and call.called.effect == "effect"
            ]
            verdict = attempt.verdict
            if verdict is not None and verdict.outcome is Outcome.SUCCESS and verdict.evidence == "none":
                found.append(Uncertainty(level="info", message=verdict.reason, step_id=step_id))
            if attempt.output is not None and attempt.output.fallback_reason and attempt.verdict is not None:
                found.append(Uncertainty(level="notable", message=attempt.output.fallback_reason, step_id=step_id))
    return tuple(found)


def _citations(text: str, sources: tuple[Source, ...], tailored: TailorOutput | None = None) -> tuple[Citation, ...]:
    """What a text cites: the quoted words one by one where they are known, else the first of each source."""
    if tailored is not None:
        cited = set(cited_ids(text))
        return tuple(
            Citation(
                source_id=one.number,
                quote=one.text_snippet,
                location=f"page {one.page}" if one.page is not None else "",
                evidence=one,
            )
            for one in tailored.citations
            if one.number in cited or not cited  # a JSON of single values has no room for marks
        )
    by_id = {source.id: source for source in sources}
    return tuple(
        Citation(source_id=number, quote=by_id[number].quotes[0] if by_id[number].quotes else "")
        for number in cited_ids(text)
        if number in by_id
    )


def _of_answer(state: RunState) -> list[Uncertainty]:
    """What was doubted in the answer that stands."""
    steps = state.plan.steps if state.plan else ()
    doubted = [(step.id, state.step(step.id).last) for step in steps if step.is_completion]
    return [
        Uncertainty(level="notable", message=f"the answer holds {attempt.doubt}", step_id=step_id)
        for step_id, attempt in doubted
        if attempt is not None and attempt.doubt
    ]


def _of_languages(state: RunState) -> list[Uncertainty]:
    """What became of the translations, where something did not come off."""
    understood, translated = state.understood, state.translated
    found = []
    if understood is not None and understood.fallback_reason is not None:
        language = name_of(understood.language)
        why = f"the request ({language}) was not translated: {understood.fallback_reason}"
        found.append(Uncertainty(level="notable", message=why))
    if translated is not None and translated.fallback_reason is not None:
        why = f"the answer could not be translated into {name_of(translated.language)}: {translated.fallback_reason}"
        found.append(Uncertainty(level="notable", message=why))
    return found
