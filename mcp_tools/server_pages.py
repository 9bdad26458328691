"""Long lists in pages: opaque cursors that go on where a page ended, although the list has changed meanwhile."""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError

PAGE = 100
"""Entries on a page. More tools than this no model chooses well from, and clients that take no second page then miss
only what stands last: other people's tools, old skills."""
MAX_CURSOR = 200
"""Characters; ours are shorter."""

Item = TypeVar("Item")


def page_of(
    items: Sequence[Item], key: Callable[[Item], str], method: str, params: types.PaginatedRequestParams | None
) -> tuple[list[Item], str | None]:
    """The page that `params` asks for, and the cursor of the next one. `MCPError` for a cursor that is not of `method`.

    A cursor holds a digest of the last entry's key, and its place: the next page begins after the entry, or where the
    entry was, should it be gone."""
    cursor = params.cursor if params is not None else None
    begin = 0
    if cursor:
        place, last = _read(cursor, method)
        begin = next((number + 1 for number, item in enumerate(items) if _digest(key(item)) == last), place)
    page = list(items[begin : begin + PAGE])
    end = begin + len(page)
    more = end < len(items) and bool(page)
    return page, _written(method, end, _digest(key(page[-1]))) if more else None


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:16]


def _written(method: str, place: int, last: str) -> str:
    text = json.dumps([method, place, last], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(cursor: str, method: str) -> tuple[int, str]:
    try:
        if len(cursor) > MAX_CURSOR:
            raise ValueError("too long")
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        of, place, last = json.loads(text)
        if of != method or type(place) is not int or not isinstance(last, str) or place < 0:
            raise ValueError("of another list")
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        raise MCPError(
            types.INVALID_PARAMS, f"cursor: it is none of {method}; list again from the beginning, without one"
        ) from error
    return place, last
