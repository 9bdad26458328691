"""Pagination with opaque cursors. A cursor continues after the last entry even if the list has changed since."""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError

PAGE_SIZE = 100
"""Entries on a page. No model chooses well from more tools, and a client that ignores further pages misses only the
last entries: external tools, old skills."""
MAX_CURSOR_CHARS = 200
"""The longest cursor that is parsed; ours are shorter."""

Item = TypeVar("Item")


def paginate(
    items: Sequence[Item], key: Callable[[Item], str], method: str, params: types.PaginatedRequestParams | None
) -> tuple[list[Item], str | None]:
    """The requested page and the cursor of the next one. Raises `MCPError` for a cursor of another method.

    A cursor holds a digest of the last entry's key and its position. If that entry is gone, the position is used.
    """
    cursor = params.cursor if params is not None else None
    begin = 0
    if cursor:
        place, last = _decode_cursor(cursor, method)
        begin = next((number + 1 for number, item in enumerate(items) if _digest(key(item)) == last), place)
    page = list(items[begin : begin + PAGE_SIZE])
    end = begin + len(page)
    more = end < len(items) and bool(page)
    return page, _encode_cursor(method, end, _digest(key(page[-1]))) if more else None


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:16]


def _encode_cursor(method: str, place: int, last: str) -> str:
    text = json.dumps([method, place, last], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode_cursor(cursor: str, method: str) -> tuple[int, str]:
    try:
        if len(cursor) > MAX_CURSOR_CHARS:
            raise ValueError("too long")
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        of, place, last = json.loads(text)
        if of != method or type(place) is not int or not isinstance(last, str) or place < 0:
            raise ValueError("of another list")
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        raise MCPError(
            types.INVALID_PARAMS, f"cursor: not a cursor of {method}; list again from the start, without a cursor"
        ) from error
    return place, last
