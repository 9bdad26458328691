"""Collects the evidence of a step's output: the text that explains its figures, and the blocks for the judge."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime

from agent.answers.figures import asks_to_invent
from agent.core.events import StepOutput
from agent.core.models import JsonObject, PlanStep
from agent.core.plan_outcome import find_failure_reason, list_abandoned_steps
from agent.core.run_state import AttemptState
from agent.execution.checks import list_unexplained
from agent.execution.rounds import may_look_again
from agent.llm.prompts import format_block
from agent.run_context.list_figures import describe_list_figures
from agent.run_context.outputs import (
    JUDGE_CHARS,
    format_args,
    format_data_block,
    list_results,
    load_output,
    to_step_output,
)
from agent.run_context.run import Run

EVIDENCE_CHARS = 16_000
"""Characters of evidence that the judge reads. Holds all evidence in most cases and fits a context of 8k tokens."""
WINDOW_CHARS = 300
"""Characters of text around a doubtful figure that stay when an output is cut."""
_HAS_DIGIT = re.compile(r"\d")


async def collect_figure_evidence(run: Run, step: PlanStep, attempt: AttemptState | None) -> str:
    """The text that may explain the figures of an output; "" if figures are not checked.

    Only models invent figures, and a rule needs tool or passage evidence to compare with. A tool's output is its own
    evidence, and a plain answer has none."""
    if step.action == "skill":
        read = [output async for _, output in _iter_read_outputs(run, step, attempt)]
        return "\n".join((*_iter_given_texts(run), *map(_join_output_texts, read))) if read else ""
    if not step.is_completion:
        return ""
    state, room = run.state, run.room
    results = await list_results(run)
    has_images = bool(state.request.images) or any(message.images for message in state.request.messages or ())
    if not results or has_images or any(map(asks_to_invent, {state.question, state.prompt})):
        return ""
    recalled = state.retrieval
    parts = [*_iter_given_texts(run), room.system_prompt, room.persona]
    parts += [m.content for m in (*(state.request.messages or ()), *(recalled.history if recalled else ()))]
    parts += [item.text for item in (recalled.items if recalled else ())]
    parts += [item.text for item in (recalled.earlier_results if recalled else ())]
    parts += [find_failure_reason(state, failed) for failed in list_abandoned_steps(state)]
    parts += [_join_output_texts(output, done.args) for done, output in results]
    if run.profile.decides == "rounds":  # its answer is written with these figures in view
        parts += [describe_list_figures(output.text, state.question) for _, output in results]
        parts += state.selections.values()
    return "\n".join(parts)


async def find_evidence_check(run: Run, step: PlanStep) -> Callable[[str], bool] | None:
    """What says of a text of this completion whether results explain it, if the planner may still call for what they
    do not; else None: the answer is shown as it is written."""
    looks = run.decides_in_rounds and may_look_again(run)
    evidence = await collect_figure_evidence(run, step, None) if looks else ""
    return (lambda text: not any(list_unexplained(text, evidence))) if evidence else None


async def build_judge_blocks(
    run: Run, step: PlanStep, attempt: AttemptState, output: StepOutput, figures: Sequence[str]
) -> str:
    """Intent, input, evidence and output as labelled blocks.

    Cuts a long output, but keeps the text around the doubtful `figures`."""
    intent = step.intent or run.state.question
    blocks = [
        format_data_block("intent", intent, limit=JUDGE_CHARS),
        format_data_block("input", format_args(dict(step.args)), limit=JUDGE_CHARS),
    ]
    if run.state.question != intent:
        blocks.append(format_data_block("evidence", run.state.question, limit=JUDGE_CHARS, source="the user's request"))
    read = [(source, output.text) async for source, output in _iter_read_outputs(run, step, attempt)]
    left = EVIDENCE_CHARS
    for source, text in read:
        excerpt = _cut_evidence(text, max(JUDGE_CHARS, left))
        left -= len(excerpt)
        blocks.append(format_block("evidence", excerpt, source=source))
    excerpt = cut_around(output.text, JUDGE_CHARS, figures)
    blocks.append(format_block("output", excerpt, step=step.id, tool=step.tool))
    return "\n".join(blocks)


def cut_around(text: str, limit: int, kept: Sequence[str]) -> str:
    """Cuts `text` to about `limit` characters. Keeps its beginning and the text around each of `kept`."""
    if len(text) <= limit:
        return text
    spans = [(0, limit)]
    for word in kept:
        at = text.find(word)
        if at >= 0:
            spans.append((max(0, at - WINDOW_CHARS), min(len(text), at + len(word) + WINDOW_CHARS)))
    parts: list[str] = []
    end = 0
    for first, last in sorted(spans):
        if first > end:
            parts.append(f"\n[cut: {first - end:,} characters]\n")
        parts.append(text[max(first, end) : last])
        end = max(end, last)
    if end < len(text):
        parts.append(f"\n[cut: {len(text) - end:,} more characters]")
    return "".join(parts)


def _cut_evidence(text: str, limit: int) -> str:
    """The text; of a long one, the lines with figures, because most doubts are about figures."""
    if len(text) <= limit:
        return text
    lines = [line for line in text.splitlines() if _HAS_DIGIT.search(line)]
    return cut_around("[lines without figures were left out]\n" + "\n".join(lines), limit, ())


async def _iter_read_outputs(
    run: Run, step: PlanStep, attempt: AttemptState | None
) -> AsyncIterator[tuple[str, StepOutput]]:
    """Yields the texts that the attempt read, each with its source: its dependencies and the tools of a skill."""
    for dependency in step.depends_on:
        output = run.state.get_step(dependency).output
        if output is not None:
            yield f"step {dependency}", await load_output(run, output)
    if attempt is None or step.action != "skill":
        return
    for call in attempt.calls:
        if call.result is not None and call.result.error_code is None:
            yield call.intent.tool, await load_output(run, to_step_output(call.result))


def _iter_given_texts(run: Run) -> Iterator[str]:
    """Yields the caller's texts and the day of the request. What a model planned, such as arguments, proves nothing."""
    yield from (run.state.prompt, run.state.question)
    yield datetime.fromtimestamp(run.state.created_at, UTC).date().isoformat()


def _join_output_texts(output: StepOutput, args: JsonObject | None = None) -> str:
    """An output's text, value and quotations as one text. Arguments that the value repeats are left out."""
    value = output.value
    if isinstance(value, dict) and args:
        value = {name: one for name, one in value.items() if name not in args or args[name] != one}
    quotes = (quote for source in output.sources for quote in (source.name, *source.quotes))
    return "\n".join((output.text, json.dumps(value, ensure_ascii=False, default=str), *quotes))
