"""Pages of items, as OpenAI's lists have them."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, Field

from agent.core.models import JsonObject
from gateway.render.errors import RequestFormatError

MAX_ITEMS = 100


class PageQuery(BaseModel):
    """Which page of a list of items a client asks for."""

    limit: int = Field(default=20, ge=1, le=MAX_ITEMS)
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None


ItemPage = Annotated[PageQuery, Query()]


def cut_page(items: Sequence[JsonObject], query: PageQuery) -> dict[str, Any]:
    """A page of `items`, which are oldest first. Raises `RequestFormatError` for an unknown `after`."""
    ordered = items if query.order == "asc" else items[::-1]
    ids = [item["id"] for item in ordered]
    if query.after is not None and query.after not in ids:
        raise RequestFormatError(f"after: there is no item {query.after[:100]!r}.", "after", "invalid_value")
    begin = ids.index(query.after) + 1 if query.after is not None else 0
    return format_page(ordered[begin : begin + query.limit], has_more=begin + query.limit < len(ordered))


def format_page(page: Sequence[JsonObject], *, has_more: bool) -> dict[str, Any]:
    """A page in OpenAI's form."""
    return {
        "object": "list",
        "data": list(page),
        "first_id": page[0]["id"] if page else "",
        "last_id": page[-1]["id"] if page else "",
        "has_more": has_more,
    }
