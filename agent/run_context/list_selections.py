"""What a small model reads of a list that a tool returned: the entries that the request asks about.

The model is asked for a filter (`agent.planning.selection`), once for each list of a run. The filter is applied to what
the model may read of the result.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

from agent.core.errors import ModelError
from agent.core.events import EntriesSelected, StepOutput
from agent.core.models import JsonObject, PlanStep
from agent.core.run_state import StepResult
from agent.llm.port import ModelReply, ResponseSchema
from agent.planning.list_steps import FOR_EACH
from agent.planning.meant_filters import Question
from agent.planning.selection import Selection, format_entries, select_entries
from agent.run_context.list_figures import describe_list_figures
from agent.run_context.message_labels import list_days
from agent.run_context.model_calls import MeteredModels, ModelCall
from agent.run_context.outputs import LEAST_RESULT_CHARS, cut_text, read_for_model
from agent.run_context.run import Run
from agent.text.json_entries import read_json_entries
from agent.text.question_parts import split_joined_questions

MAX_LISTS, MAX_QUESTIONS = 3, 3
"""Lists that came at once, and questions of one request, that the model is asked about."""
REPLY_TOKENS = 200
MAX_READ_CHARS = 400_000
BESIDE_CHARS = 300
"""Characters of what stands beside a list, such as its total."""


async def select_in_lists(run: Run, results: Iterable[StepResult]) -> None:
    """Selects in the lists among results, in each one once in a run. Raises `BudgetError` and `StoreError`."""
    if run.profile.decides != "rounds" or not run.works_with_model:
        return
    selected = run.state.selections
    new = ((step, output) for step, output in results if step.id not in selected and _is_look(run, step, output))
    for step, output in islice(new, MAX_LISTS):
        await run.note(await _select(run, read_for_model(run, output)), step_id=step.id)


def _is_look(run: Run, step: PlanStep, output: StepOutput) -> bool:
    """Whether an output is that of a tool that looked something up; a search has put first what fits."""
    spec = run.engine.registry.find_spec(step.tool)
    if spec is None or spec.has_side_effect or spec.hints.is_search or output.sources:
        return False
    return FOR_EACH not in step.args and len(output.text) <= MAX_READ_CHARS and output.text.lstrip()[:1] in ("[", "{")


async def _select(run: Run, text: str) -> EntriesSelected:
    """What the request asks about in the list that a text is; nothing if that is all of it. Of several questions each
    has a selection of its own."""
    listed = read_json_entries(text)
    entries = [entry for entry in listed.entries if isinstance(entry, dict)] if listed is not None else []
    if listed is None or len(entries) < len(listed.entries):
        return EntriesSelected()
    selections: dict[str, Selection] = {}
    for question in split_joined_questions(run.state.question)[:MAX_QUESTIONS]:
        try:
            selection = await select_entries(_Model(run).ask, _build_question(run, question), entries)
        except ModelError:
            selection = None
        if selection is None:
            return EntriesSelected()
        selections[question] = selection
    beside = json.dumps(listed.beside, ensure_ascii=False) if listed.beside is not None else ""
    parts = [beside] if 0 < len(beside) <= BESIDE_CHARS else []
    parts += [_describe(selection, question) for question, selection in selections.items()]
    heading = "; ".join(dict.fromkeys(selection.heading for selection in selections.values()))
    return EntriesSelected(text="\n".join(dict.fromkeys(parts)), heading=heading)


def _describe(selection: Selection, question: str) -> str:
    text = cut_text(format_entries(selection), LEAST_RESULT_CHARS)
    figures = describe_list_figures(json.dumps(selection.entries), question)
    return f"{text}\n[computed: {figures}]" if figures else text


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
