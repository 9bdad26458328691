"""Passages put in order by a model, where that is asked for: one call, few candidates, a reply that is read strictly.
Whatever is wrong with it, the order of the deterministic reranker stays, and the note says so."""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from agent.core.errors import BudgetError, ModelError
from agent.core.models import JsonObject
from agent.knowledge.models import Ask
from agent.prompts import render
from agent.prompts.blocks import block

CANDIDATES = 20
"""Passages that are shown to the model; the first ten of an answer are among the first twenty of the words and vectors
as a rule."""
PASSAGE_CHARS = 800
QUESTION_CHARS = 4_000

NO_MODEL = "no model to rerank with: the passages are in the order of the deterministic reranker"
BY_MODEL = "the first {count} were put in order by a model"


async def order_of(question: str, passages: Sequence[str], ask: Ask | None) -> tuple[list[int], str]:
    """The indices of the passages in their order, and what to say of it. Passages beyond `CANDIDATES` stay last."""
    as_they_are = list(range(len(passages)))
    if ask is None:
        return as_they_are, NO_MODEL
    count = min(len(passages), CANDIDATES)
    if count < 2:
        return as_they_are, ""
    try:
        reply = await ask(_messages(question, passages[:count]))
    except (ModelError, BudgetError) as error:
        return as_they_are, f"no model to rerank with ({error.message}): the order is the deterministic reranker's"
    order = _order(reply, count)
    if order is None:
        return as_they_are, "the model's order could not be read: the order is the deterministic reranker's"
    return [*order, *as_they_are[count:]], BY_MODEL.format(count=count)


def _messages(question: str, passages: Sequence[str]) -> tuple[JsonObject, ...]:
    shown = [block("user_request", question[:QUESTION_CHARS])]
    shown += [block("result", text[:PASSAGE_CHARS], number=str(at)) for at, text in enumerate(passages, start=1)]
    return ({"role": "system", "content": render("rerank")}, {"role": "user", "content": "\n".join(shown)})


def _order(reply: str, count: int) -> list[int] | None:
    """The indices a reply names; None unless it names each exactly once, and says nothing else."""
    try:
        told: JsonValue = json.loads(reply.strip().removeprefix("```json").removeprefix("```").removesuffix("```"))
    except ValueError:
        return None
    numbers = told.get("order") if isinstance(told, dict) else None
    if not isinstance(numbers, list):
        return None
    order = [number - 1 for number in numbers if isinstance(number, int) and not isinstance(number, bool)]
    return order if len(order) == len(numbers) and sorted(order) == list(range(count)) else None
