"""Lets a model reorder passages if the caller asks for it: one call, few candidates, a strictly parsed reply.

If anything goes wrong, the order of the deterministic reranker stays, and the note says so.
"""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from agent.core.errors import BudgetError, ModelError
from agent.core.fenced_json import remove_json_fence
from agent.core.models import JsonObject
from agent.llm.prompts import format_block
from gateway.features.documents.engine.prompts import render
from gateway.features.documents.engine.search.models import AskModel

MAX_CANDIDATES = 20
"""Passages that the model sees. The best ten are usually among the first twenty of words and vectors."""
PASSAGE_CHARS = 800
QUESTION_CHARS = 4_000

UNCHANGED = "the passages are in the order of the deterministic reranker"
NO_MODEL = f"no model to rerank with: {UNCHANGED}"
RERANKED = "a model ordered the first {count} passages"


async def rerank_with_model(question: str, passages: Sequence[str], ask: AskModel | None) -> tuple[list[int], str]:
    """The new order as indices, and a note. Passages beyond `MAX_CANDIDATES` stay last."""
    as_they_are = list(range(len(passages)))
    if ask is None:
        return as_they_are, NO_MODEL
    count = min(len(passages), MAX_CANDIDATES)
    if count < 2:
        return as_they_are, ""
    try:
        reply = await ask(_build_messages(question, passages[:count]))
    except (ModelError, BudgetError) as error:
        return as_they_are, f"the model could not rerank ({error.message}): {UNCHANGED}"
    order = _parse_order(reply, count)
    if order is None:
        return (
            as_they_are,
            f"the reply of the model is not an order: {UNCHANGED}",
        )
    return [*order, *as_they_are[count:]], RERANKED.format(count=count)


def _build_messages(question: str, passages: Sequence[str]) -> tuple[JsonObject, ...]:
    prompt_blocks = [format_block("user_request", question[:QUESTION_CHARS])]
    prompt_blocks += [
        format_block("result", text[:PASSAGE_CHARS], number=str(at)) for at, text in enumerate(passages, start=1)
    ]
    return ({"role": "system", "content": render("rerank")}, {"role": "user", "content": "\n".join(prompt_blocks)})


def _parse_order(reply: str, count: int) -> list[int] | None:
    """The indices in a reply, or None unless it names each exactly once."""
    try:
        order_data: JsonValue = json.loads(remove_json_fence(reply))
    except ValueError:
        return None
    numbers = order_data.get("order") if isinstance(order_data, dict) else None
    if not isinstance(numbers, list):
        return None
    order = [number - 1 for number in numbers if isinstance(number, int) and not isinstance(number, bool)]
    return order if len(order) == len(numbers) and sorted(order) == list(range(count)) else None
