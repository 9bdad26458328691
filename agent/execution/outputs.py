"""What steps produced, as other steps, prompts and answers take it up: loaded from blobs, capped, quoted as data."""

import json
import re
from collections.abc import Iterable
from functools import partial

from agent.core.events import StepOutput, ToolReturned
from agent.core.fold import RunState
from agent.core.models import JsonObject, PlanStep, Source
from agent.execution.run import Run
from agent.prompts.blocks import block

JUDGE_CHARS = 2_000
"""How much of a result the judge reads: enough to see what it is, short enough for an 8k context."""
CITATION = re.compile(r"\[(\d{1,3})\](?!\()")
"""A citation as tools and answers write it; not the text of a link."""
SKILL_CHARS = 8_000
"""How much of a result a skill or the completion reads."""


def step_output(returned: ToolReturned) -> StepOutput:
    """A tool's return as the output of its step."""
    return StepOutput(
        value=returned.output,
        text=returned.text,
        blob=returned.blob,
        tainted=returned.tainted,
        error_code=returned.error_code,
        error=returned.error,
        sources=returned.sources,
        effective=returned.implementation,
    )


async def load(run: Run, output: StepOutput) -> StepOutput:
    """The output with its value and whole text, fetched from `blobs` where they lie there."""
    if output.blob is None:
        return output
    payload = json.loads(await run.engine.journal.get_blob(output.blob))
    return output.model_copy(update={"value": payload["value"], "text": payload["text"]})


async def results(run: Run) -> list[tuple[PlanStep, StepOutput]]:
    """The succeeded steps of the plan in force with their outputs, completions left out. What a text cites as `[n]` is
    the n-th source of `number_sources` over all of them."""
    found = []
    for step in run.state.succeeded_steps():
        output = run.state.step(step.id).output
        if output is not None and not step.is_completion:
            found.append((step, await load(run, output)))
    return _renumbered(found)


def cap(text: str, limit: int) -> str:
    """`text` cut at `limit` characters, at a line or word where one is near, saying so."""
    if len(text) <= limit:
        return text
    cut = max(text.rfind("\n", limit - 200, limit), text.rfind(" ", limit - 40, limit))
    return f"{text[: cut if cut > 0 else limit]}\n[cut: {len(text) - limit:,} more characters]"


def data_block(tag: str, text: str, /, *, limit: int, **attributes: str) -> str:
    """Text from elsewhere as a delimited block a prompt may hold: what stands in it is data, never instructions."""
    return block(tag, cap(text, limit), **attributes)


def args_text(args: JsonObject, limit: int = SKILL_CHARS) -> str:
    """Arguments as lines a model reads easily."""
    lines = []
    for key, value in args.items():
        lines.append(f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    return cap("\n".join(lines), limit)


def shown_args(args: JsonObject, limit: int = 2_000) -> JsonObject:
    """Arguments as the trace shows them: long texts shortened."""
    return {key: cap(value, limit) if isinstance(value, str) else value for key, value in args.items()}


def number_sources(outputs: Iterable[tuple[PlanStep, StepOutput]]) -> tuple[Source, ...]:
    """Every source once, in order of the steps, numbered from 1 as answers cite them."""
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


def _renumbered(outputs: list[tuple[PlanStep, StepOutput]]) -> list[tuple[PlanStep, StepOutput]]:
    """The outputs with the numbers in their texts made those of all sources together: each tool counts its own."""
    numbers = {(source.name, source.url): source.id for source in number_sources(outputs)}
    found = []
    for step, output in outputs:
        own = {source.id: numbers[source.name, source.url] for source in number_sources([(step, output)])}
        if any(number != meant for number, meant in own.items()):
            text = CITATION.sub(partial(_cited_as, own), output.text)
            output = output.model_copy(update={"text": text})  # noqa: PLW2901
        found.append((step, output))
    return found


def _cited_as(own: dict[int, int], match: re.Match[str]) -> str:
    number = own.get(int(match[1]))
    return match[0] if number is None else f"[{number}]"


def tainted_inputs(state: RunState, step: PlanStep) -> bool:
    """Whether anything this step builds on came from outside."""
    grounds = (state.step(dependency).output for dependency in step.depends_on)
    return state.tainted or any(output.tainted for output in grounds if output is not None)
