"""What a small model reads of a list that a tool returned: the entries that the request asks about.

The model is asked for a filter (`agent.planning.selection`), once for each list of a run. The filter is applied to what
the model may read of the result.
"""

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from itertools import islice
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from agent.core.errors import ModelError
from agent.core.events import EntriesSelected, StepOutput
from agent.core.models import JsonObject, PlanStep
from agent.core.run_state import StepResult
from agent.llm.port import ModelReply, ResponseSchema
from agent.planning.list_steps import FOR_EACH
from agent.planning.meant_filters import Question
from agent.planning.selection import Selection, format_entries, select_entries
from agent.policy.guardrails.message_labels import split_attachments
from agent.run_context.conversation import split_at_prompt
from agent.run_context.list_figures import describe_list_figures
from agent.run_context.message_labels import list_days
from agent.run_context.model_calls import MeteredModels, ModelCall
from agent.run_context.outputs import LEAST_RESULT_CHARS, RESULTS_CHARS, cut_text, read_for_model
from agent.run_context.run import Run
from agent.text.follow_up import read_alone
from agent.text.json_entries import read_json_entries
from agent.text.question_parts import split_joined_questions

MAX_LISTS, MAX_QUESTIONS = 3, 3
"""Lists that came at once, and questions of one request, that the model is asked about."""
REPLY_TOKENS = 200
MAX_READ_CHARS = 400_000
BESIDE_CHARS, BESIDE_TEXT_CHARS = 600, 100
"""Characters of what stands beside a list, such as its total, and of a text in it, such as the cursor of a page."""


async def select_in_lists(run: Run, results: Iterable[StepResult]) -> None:
    """Selects in the lists among results, in each one once in a run. Raises `BudgetError` and `StoreError`."""
    if run.profile.decides != "rounds" or not run.works_with_model:
        return
    selected = run.state.selections
    new = ((step, output) for step, output in results if step.id not in selected and _is_look(run, step, output))
    for step, output in islice(new, MAX_LISTS):
        await run.note(await _select(run, output), step_id=step.id)


def _is_look(run: Run, step: PlanStep, output: StepOutput) -> bool:
    """Whether an output is that of a tool that looked something up; a search has put first what fits."""
    spec = run.engine.registry.find_spec(step.tool)
    if spec is None or spec.has_side_effect or spec.hints.is_search or output.sources:
        return False
    return FOR_EACH not in step.args and len(output.text) <= MAX_READ_CHARS and output.text.lstrip()[:1] in ("[", "{")


async def _select(run: Run, output: StepOutput) -> EntriesSelected:
    """What the request asks about in the list that an output is; nothing if that is all of it, or if much more than the
    list is there. Of several questions each has a selection of its own."""
    listed = read_json_entries(read_for_model(run, output))
    entries = [entry for entry in listed.entries if isinstance(entry, dict)] if listed is not None else []
    if listed is None or len(entries) < len(listed.entries):
        return EntriesSelected()
    beside = _describe_beside(listed.beside)
    if len(beside) > BESIDE_CHARS:
        return EntriesSelected()
    selections: dict[str, Selection] = {}
    for question in _list_questions(run):
        try:
            selection = await select_entries(_Model(run).ask, _build_question(run, question), entries)
        except ModelError:
            selection = None
        if selection is None:
            return EntriesSelected()
        selections[question] = selection
    if not selections:
        return EntriesSelected()
    limit = RESULTS_CHARS // len(selections)
    # Once more without orders: neither escaped characters nor the end of a long list were searched for them.
    read = partial(_read_part, run, output)
    parts = [read(beside), *(_describe(one, question, read, limit) for question, one in selections.items())]
    heading = "; ".join(dict.fromkeys(selection.heading for selection in selections.values()))
    return EntriesSelected(text="\n".join(filter(None, dict.fromkeys(parts))), heading=heading)


def _list_questions(run: Run) -> list[str]:
    """The questions of the request, without what is attached to it; none if it has to be read with the messages before
    it, which a filter is not written from."""
    question = split_attachments(run.state.question).own
    earlier, _ = split_at_prompt(run.state)
    is_follow_up = any(message.role == "user" for message in earlier) and not read_alone(question)
    return [] if is_follow_up or not question else split_joined_questions(question)[:MAX_QUESTIONS]


def _describe_beside(beside: JsonValue) -> str:
    """What stands beside a list, with long texts cut; "" for nothing."""
    if not isinstance(beside, dict):
        return ""
    cut = {name: value[:BESIDE_TEXT_CHARS] if isinstance(value, str) else value for name, value in beside.items()}
    return json.dumps(cut, ensure_ascii=False)


def _read_part(run: Run, output: StepOutput, text: str) -> str:
    """A part of an output as the model of the run reads it."""
    return read_for_model(run, output.model_copy(update={"text": text}))


def _describe(selection: Selection, question: str, read: Callable[[str], str], limit: int) -> str:
    """A selection with its figures, which stand before entries of which a prompt may leave out the last ones."""
    heading, _, entries = format_entries(selection).partition("\n")
    figures = describe_list_figures(json.dumps(selection.entries), question, which="selected")
    computed, entries = f"[computed: {figures}]" if figures else "", read(entries)
    is_short = len(entries) + len(computed) <= LEAST_RESULT_CHARS
    parts = (heading, entries, computed) if is_short else (heading, computed, entries)
    return cut_text("\n".join(filter(None, parts)), limit)


def _build_question(run: Run, text: str) -> Question:
    zone = ZoneInfo(run.engine.settings.timezone)
    today = datetime.fromtimestamp(run.state.created_at, zone).date()
    return Question(text, list_days(run.state, zone), today.isoformat())


class _Model:
    """The model of a run, asked for filters."""

    def __init__(self, run: Run) -> None:
        self._models = MeteredModels(run)

    async def ask(self, messages: tuple[JsonObject, ...], schema: ResponseSchema) -> ModelReply:
        """The reply to messages. Raises `ModelError`."""
        return await self._models.complete(ModelCall("planner", messages, schema=schema, max_tokens=REPLY_TOKENS))
