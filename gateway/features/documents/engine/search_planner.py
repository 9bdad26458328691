"""Asks a model, in rooms with `knowledge`, which searches answer a message of a conversation.

The reply is bound to a small flat schema. What it writes are search queries only: they read, and choose no tool.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent.core.errors import PlanInvalidError
from agent.core.models import JsonObject
from agent.llm.port import ModelReply, ResponseSchema
from agent.llm.prompts import format_block
from agent.planning.parse import MAX_REPLY_CHARS, read_first_object
from agent.planning.prompt import QUESTION_CHARS, RESULT_CHARS, format_history
from agent.planning.request import PlanningRequest
from agent.run_context.outputs import cut_text
from gateway.features.documents.engine.prompts import render

MAX_SEARCHES = 4
QUERY_CHARS = 300


@dataclass(frozen=True, slots=True)
class SearchReply:
    """The searches that a model wants, and what it wants to look up once their results are known ("" for nothing)."""

    searches: tuple[str, ...]
    then: str = ""


def build_search_messages(request: PlanningRequest, *, may_continue: bool) -> tuple[JsonObject, ...]:
    """The messages of the call. After a first round they hold its results, as data."""
    system = render(
        "searches",
        max_searches=str(MAX_SEARCHES),
        then="- then says what to look up with what these searches find, where a second search needs words that only "
        'the first can find; else it is "".\n'
        if may_continue
        else "",
    )
    parts = []
    if lines := format_history(request):
        parts.append(format_block("history", "\n".join(lines)))
    if request.earlier_plans.completed:
        texts = [cut_text(one.text, RESULT_CHARS) for one in request.earlier_plans.completed.values()]
        parts.append(format_block("results", "\n".join(texts)))
        parts.append("These were found already. Write only the searches for what is still missing.")
    parts.append(format_block("user_request", cut_text(request.original or request.question, QUESTION_CHARS)))
    example = _encode_example(request, may_continue=may_continue)
    parts.append(f"Reply with one JSON object. This one searches the message as it stands: {example}")
    return ({"role": "system", "content": system}, {"role": "user", "content": "\n".join(parts)})


def build_search_schema(*, may_continue: bool) -> ResponseSchema:
    """The JSON schema of the reply."""
    query: JsonObject = {"type": "string", "minLength": 1, "maxLength": QUERY_CHARS}
    properties: JsonObject = {
        "searches": {"type": "array", "items": query, "minItems": 1, "maxItems": MAX_SEARCHES},
        **({"then": {"type": "string", "maxLength": QUERY_CHARS}} if may_continue else {}),
    }
    return ResponseSchema(
        "searches",
        {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False},
    )


def read_searches(reply: ModelReply) -> SearchReply:
    """The searches of a reply, each once. Raises `PlanInvalidError` if it holds none."""
    data = _read_object(reply)
    texts = _list_texts(data.get("searches"))
    if not texts:
        raise PlanInvalidError(["the reply holds no searches"])
    then = data.get("then")
    return SearchReply(tuple(texts[:MAX_SEARCHES]), then.strip() if isinstance(then, str) else "")


def _encode_example(request: PlanningRequest, *, may_continue: bool) -> str:
    """A reply that searches the message as it stands: small models copy an example letter by letter."""
    words = cut_text(" ".join((request.original or request.question).split()), QUERY_CHARS)
    example: JsonObject = {"searches": [words], **({"then": ""} if may_continue else {})}
    return json.dumps(example, ensure_ascii=False)


def _read_object(reply: ModelReply) -> JsonObject:
    """The first JSON object of a reply that is not cut off."""
    if reply.finish_reason == "length" or len(reply.text) > MAX_REPLY_CHARS:
        raise PlanInvalidError(["the reply was cut off before its end, or is too long"])
    value = read_first_object(reply.text)
    return value if isinstance(value, dict) else {}


def _list_texts(value: JsonValue) -> list[str]:
    items: Sequence[JsonValue] = value if isinstance(value, list) else []
    # Endpoints without schemas may return objects: {"query": ...}.
    texts = [next(iter(one.values()), None) if isinstance(one, dict) else one for one in items]
    clean = (" ".join(text.split())[:QUERY_CHARS] for text in texts if isinstance(text, str))
    return list(dict.fromkeys(text for text in clean if text))
