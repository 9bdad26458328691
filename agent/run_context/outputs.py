"""Prepares outputs of steps for other steps, prompts and answers: loads blobs, caps texts, quotes them as data."""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from pydantic import JsonValue

from agent.core.events import StepOutput, ToolReturned
from agent.core.json_texts import write_text
from agent.core.models import JsonObject, PlanStep, Source
from agent.core.plan_outcome import find_failure_reason
from agent.core.run_state import RunState, StepResult
from agent.llm.prompts import format_block
from agent.run_context.list_figures import describe_list_figures
from agent.run_context.run import Run
from agent.text.excerpts import cut_to_excerpt

RESULTS_CHARS, LEAST_RESULT_CHARS = 10_000, 2_000
"""Characters of all results, and at least of each, in a small model's prompt. It may read only 200 a second."""
JUDGE_CHARS = 2_000
"""Characters of a result that the judge reads. They fit a context of 8k tokens."""
CITATION = re.compile(r"\[(\d{1,3})\](?!\()")
"""A citation in tool results and answers. Does not match the text of a link."""
_SPACED_CITATION = re.compile(rf" ?{CITATION.pattern}")
SHOWN_ARG_CHARS = 2_000
"""Characters of a text argument that the log keeps at a step's start."""
EXCERPT_NOTES_CHARS = 1_500
"""Characters of the note about the end of an excerpt, and of what was computed from a list."""
SKILL_CHARS = 8_000
"""Characters of a result that a skill or a completion reads."""

HISTORY_INPUT = "conversation"
"""The input with which the skill of a room gets the messages before the request."""


def to_step_output(returned: ToolReturned, *, fallback_reason: str | None = None) -> StepOutput:
    """A tool's return as the output of its step."""
    return StepOutput(
        value=returned.output,
        text=returned.text,
        blob=returned.blob,
        whole_blob=returned.whole_blob,
        tainted=returned.tainted,
        error_code=returned.error_code,
        error=returned.error,
        error_stage=returned.error_stage,
        sources=returned.sources,
        effective=returned.implementation,
        fallback_reason=fallback_reason,
    )


async def load_output(run: Run, output: StepOutput) -> StepOutput:
    """The output with its value and complete text, loaded from `blobs` if they are stored there."""
    if output.blob is None:
        return output
    payload = json.loads(await run.journal.get_blob(output.blob))
    return output.model_copy(update={"value": payload["value"], "text": payload["text"]})


async def store_output(run: Run, value: JsonValue, text: str) -> str:
    """Stores the value and the text of an output that is too long for the log; the id of the blob for `load_output`."""
    payload = json.dumps({"value": value, "text": text}, ensure_ascii=False)
    return await run.journal.put_blob(payload.encode(), run_id=run.run_id)


async def load_whole_output(run: Run, output: StepOutput) -> StepOutput:
    """The output as it was before personal data was removed for the log, as arguments of a later step need it:
    a mail to `[removed: EMAIL]` reaches nobody.
    """
    if output.whole_blob is None:
        return await load_output(run, output)
    return await load_output(run, output.model_copy(update={"blob": output.whole_blob}))


async def list_results(run: Run) -> list[StepResult]:
    """The succeeded steps of the current plan with their outputs, without completions.

    A citation `[n]` in a text is the n-th source of `number_sources` over all outputs.
    """
    results = []
    for step in run.state.list_succeeded_steps():
        output = run.state.get_step(step.id).output
        if output is not None and step.is_work:
            results.append((step, _name_nothing(step, await load_output(run, output))))
    return _renumber_citations(results)


def _name_nothing(step: PlanStep, output: StepOutput) -> StepOutput:
    """The output; that of a tool that returned nothing with a text that says so, for answers and models."""
    if step.action == "skill" or output.text.strip():
        return output
    return output.model_copy(update={"text": f"{step.tool} ran and returned nothing."})


def cut_text(text: str, limit: int) -> str:
    """Cuts `text` at `limit` characters, at a nearby line or word, with a note about the cut."""
    if len(text) <= limit:
        return text
    cut = max(text.rfind("\n", limit - 200, limit), text.rfind(" ", limit - 40, limit))
    return f"{text[: cut if cut > 0 else limit]}\n[cut: {len(text) - limit:,} more characters]"


def format_data_block(tag: str, text: str, /, *, limit: int, **attributes: str) -> str:
    """External text as a delimited block, which a model reads as data and not as instructions."""
    return format_block(tag, cut_text(text, limit), **attributes)


def read_for_model(run: Run, output: StepOutput) -> str:
    """The text of a loaded output as the model of a run reads it: a small one does what it reads, and gets texts from
    outside without what gives orders to assistants."""
    if not output.tainted or not obeys_all_it_reads(run):
        return output.text
    from agent.policy.guardrails.orders import leave_out_orders  # noqa: PLC0415 - loaded with the first such result

    return leave_out_orders(output.text)


def obeys_all_it_reads(run: Run) -> bool:
    """Whether the model of a run is one that takes orders in results for the user's."""
    return run.profile.decides == "rounds"


def format_args(args: JsonObject) -> str:
    """Arguments as lines of text for a model."""
    return cut_text("\n".join(f"{key}: {write_text(value)}" for key, value in args.items()), SKILL_CHARS)


def shorten_args(args: JsonObject) -> JsonObject:
    """Arguments for the trace, with long texts shortened."""
    return {key: cut_text(value, SHOWN_ARG_CHARS) if isinstance(value, str) else value for key, value in args.items()}


def number_sources(outputs: Iterable[StepResult]) -> tuple[Source, ...]:
    """Every source once, in order of the steps, numbered from 1 for citations."""
    seen: dict[tuple[str, str | None], Source] = {}
    for step, output in outputs:
        for source in output.sources:
            key = (source.name, source.url)
            if key in seen:
                quotes = tuple(dict.fromkeys((*seen[key].quotes, *source.quotes)))
                seen[key] = seen[key].model_copy(update={"quotes": quotes})
            else:
                seen[key] = source.model_copy(update={"id": len(seen) + 1, "step_id": step.id})
    return tuple(seen.values())


def _renumber_citations(outputs: list[StepResult]) -> list[StepResult]:
    """The outputs with citations renumbered over all sources, because each tool numbers its own from 1."""
    if not any(output.sources for _, output in outputs):
        return outputs
    numbers = {(source.name, source.url): source.id for source in number_sources(outputs)}
    results = []
    for step, output in outputs:
        own = {source.id: numbers[source.name, source.url] for source in number_sources([(step, output)])}
        if any(number != meant for number, meant in own.items()):
            text = CITATION.sub(partial(_replace_citation, own), output.text)
            output = output.model_copy(update={"text": text})  # noqa: PLW2901
        results.append((step, output))
    return results


def remove_citations(output: StepOutput) -> StepOutput:
    """The output with a text, or a text as value, without the citations of its sources."""
    numbers = {source.id for source in output.sources}
    if not numbers:
        return output
    text = _remove_marks(output.text, numbers)
    value = _remove_marks(output.value, numbers) if isinstance(output.value, str) else output.value
    return output.model_copy(update={"text": text, "value": value})


def _remove_marks(text: str, numbers: Collection[int]) -> str:
    return _SPACED_CITATION.sub(lambda mark: "" if int(mark[1]) in numbers else mark[0], text)


def _replace_citation(own: dict[int, int], match: re.Match[str]) -> str:
    number = own.get(int(match[1]))
    return match[0] if number is None else f"[{number}]"


def has_tainted_inputs(state: RunState, step: PlanStep) -> bool:
    """Whether any input of this step is tainted."""
    inputs = (state.get_step(dependency).output for dependency in step.depends_on)
    reads_all = reads_history(state, step)
    attached = any(  # a skill reads the request and the room's instructions
        not label.trusted and (reads_all or label.source in ("attachment", "instructions"))
        for label in state.message_labels
    )
    return state.tainted or attached or any(output.tainted for output in inputs if output is not None)


def reads_history(state: RunState, step: PlanStep) -> bool:
    """Whether a step is the skill of its room, which gets the messages before the request (`HISTORY_INPUT`)."""
    return step.action == "skill" and step.tool == state.room.skill and HISTORY_INPUT in step.args


_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def parse_cited_ids(answer: str) -> list[int]:
    """The numbers of the citations `[n]` outside code, in order, without duplicates."""
    return list(dict.fromkeys(int(number) for number in CITATION.findall(_CODE.sub("", answer))))


_PICTURE = re.compile(r"!\[[^\]\n]{0,200}\]\((/v1/runs/([^/\s()]+)/artifacts/[^\s()]{1,300})\)")


def list_pictures(outcomes: Iterable[StepResult], run_id: str) -> dict[str, str]:
    """The pictures of this run that results show, as Markdown by their address; each once, in order."""
    matches = (match for _, output in outcomes for match in _PICTURE.finditer(output.text))
    return {match[1]: match[0] for match in matches if match[2] == run_id}


def format_missing_pictures(pictures: dict[str, str], answer: str) -> str:
    """The Markdown that an answer lacks to show all pictures; "" if it lacks none."""
    missing = [text for address, text in pictures.items() if address not in answer]
    return "".join(f"\n\n{text}" for text in missing)


def build_result_blocks(run: Run, outcomes: Sequence[StepResult], failed: Sequence[PlanStep]) -> list[str]:
    """A block for each result and each step that failed, for the prompt of an answer."""
    is_small = run.profile.decides == "rounds"
    selected = leave_out_looks(run, outcomes) if is_small else outcomes
    most = max(LEAST_RESULT_CHARS, RESULTS_CHARS // max(1, len(selected))) if is_small else SKILL_CHARS
    results = [
        format_data_block(
            "result",
            _select_text(run, step, output, most) if is_small else output.text,
            limit=most + EXCERPT_NOTES_CHARS,
            step=step.id,
            tool=step.tool,
            intent=_describe_intent(run, step),
            input=_describe_input(run, step),
        )
        for step, output in selected
    ]
    failures = [
        format_data_block(
            "failed",
            find_failure_reason(run.state, step),
            limit=JUDGE_CHARS,
            step=step.id,
            tool=step.tool,
            intent=_describe_intent(run, step),
        )
        for step in failed
    ]
    return results + failures


def _select_text(run: Run, step: PlanStep, output: StepOutput, limit: int) -> str:
    """What a small model reads of a long result. Passages with sources are in the order of their relevance."""
    spec = run.engine.registry.find_spec(step.tool)
    if selected := run.state.selections.get(step.id):
        return cut_text(selected, limit)
    text = read_for_model(run, output)
    if output.sources or spec is None or spec.hints.is_search:
        return cut_text(text, limit)
    figures = describe_list_figures(output.text, run.state.question)
    excerpt = cut_to_excerpt(text, limit, run.state.question)
    return f"{excerpt}\n[computed: {figures}]" if figures else excerpt


def leave_out_looks(run: Run, outcomes: Sequence[StepResult], failed: Sequence[PlanStep] = ()) -> Sequence[StepResult]:
    """The results without those that only showed what another call then worked on, or one of the `failed` was to: a
    small model takes the first rows of a table for the answer of the query. A table that no call worked on stays."""
    specs = [(step, run.engine.registry.find_spec(step.tool)) for step in (*(one for one, _ in outcomes), *failed)]
    following = [(step, spec.hints.looks_first_with) for step, spec in specs if spec is not None]
    return [
        (step, output)
        for step, output in outcomes
        if not any(look == step.tool and _works_on(other, step) for other, look in following)
    ]


def _works_on(step: PlanStep, look: PlanStep) -> bool:
    """Whether a step has the inputs of a look, with all of their values."""
    return all(
        name in step.args and _list_values(value) <= _list_values(step.args[name]) for name, value in look.args.items()
    )


def _list_values(value: JsonValue) -> set[str]:
    return {json.dumps(one, sort_keys=True) for one in (value if isinstance(value, list) else [value])}


def _describe_intent(run: Run, step: PlanStep) -> str:
    """What a step is for; "" for a call of a round. A small model is often wrong about it, and then answers with it."""
    return "" if run.decides_in_rounds and step.action != "skill" else step.intent


def _describe_input(run: Run, step: PlanStep) -> str:
    """The arguments with which a step called its tool; "" for a skill, whose intent says them."""
    attempt = run.state.get_step(step.id).last
    calls = attempt.calls if attempt is not None and step.action != "skill" else ()
    return format_args(calls[-1].intent.args) if calls else ""
