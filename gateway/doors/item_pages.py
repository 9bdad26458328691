"""Pages of items, as OpenAI's lists have them."""

from collections.abc import Sequence
from typing import Any, Literal

from agent.core.models import JsonObject
from gateway.errors import RequestFormatError


def cut_page(
    items: Sequence[JsonObject], *, limit: int, order: Literal["asc", "desc"], after: str | None
) -> dict[str, Any]:
    """Returns a page of `items`, which are oldest first. Raises `RequestFormatError` for an unknown `after`."""
    ordered = items if order == "asc" else items[::-1]
    ids = [item["id"] for item in ordered]
    if after is not None and after not in ids:
        raise RequestFormatError(f"after: there is no item {after[:100]!r}.", "after", "invalid_value")
    begin = ids.index(after) + 1 if after is not None else 0
    page = ordered[begin : begin + limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else "",
        "last_id": page[-1]["id"] if page else "",
        "has_more": begin + limit < len(ordered),
    }
