"""CSV text without what stands before its header."""

import os
from typing import NamedTuple

from agent.text.delimited import find_separator, find_titles, has_escaped_quotes
from mcp_tools.tables.text_files import open_temporary_file

_HEAD_BYTES = 65_536
_CHUNK = 1 << 20


class PreparedText(NamedTuple):
    """CSV text behind a descriptor; the delimiter and escape that the file states, empty where it states none."""

    descriptor: int
    delimiter: str = ""
    escape: str = ""
    titles: tuple[str, ...] = ()


def prepare_text(descriptor: int, delimiter: str | None) -> PreparedText:
    """The text without its `sep=` line and the lines above the table."""
    head = os.pread(descriptor, _HEAD_BYTES, 0).decode("utf-8", "replace")
    named, skipped = find_separator(head)
    delimiter = (named if skipped else delimiter or named) or ""  # a line of the file says more than a guess
    titles, length = find_titles(head[skipped:], delimiter)
    skipped += length
    escape = "\\" if has_escaped_quotes(head) else ""
    if not skipped:
        return PreparedText(descriptor, delimiter, escape)
    return PreparedText(_copy_from(descriptor, len(head[:skipped].encode())), delimiter, escape, titles)


def _copy_from(descriptor: int, start: int) -> int:
    text = open_temporary_file()
    with os.fdopen(os.dup(text), "wb") as output:
        while chunk := os.pread(descriptor, _CHUNK, start):
            output.write(chunk)
            start += len(chunk)
    return text
