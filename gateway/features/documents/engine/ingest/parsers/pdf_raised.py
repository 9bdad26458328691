"""Raised figures of a PDF's page in its blocks: liteparse writes "40" with the raised mark of a note "1" as 401."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from agent.text.superscripts import RAISED_SIGNS, raise_figures
from gateway.features.documents.engine.ingest.parsers.draft import Block
from gateway.features.documents.engine.ingest.parsers.pdfium import Raised

_CONTEXTS = ((8, 4), (3, 2), (0, 0))
"""How many characters before the figure and behind what is raised must be the same; less where a table's cell ends."""


def raise_in_blocks(blocks: Sequence[Block], raised: Iterable[Raised]) -> list[Block]:
    """The blocks of a page with its raised figures as such; both are in reading order, or nearly so."""
    raised_blocks = list(blocks)
    for one in raised:
        for index, pattern in _iter_places(one, len(blocks)):
            text, count = pattern.subn(partial(_raise, one), raised_blocks[index].text, count=1)
            if count:
                raised_blocks[index] = raised_blocks[index]._replace(text=text)
                break
    return raised_blocks


def _iter_places(raised: Raised, blocks: int) -> Iterator[tuple[int, re.Pattern[str]]]:
    for context in _CONTEXTS:
        if not context[0] and not raised.before[-1:].isdigit():  # a figure without what stands before it is anywhere
            continue
        pattern = _make_pattern(raised, *context)
        yield from ((index, pattern) for index in range(blocks))


def _make_pattern(raised: Raised, before: int, after: int) -> re.Pattern[str]:
    figure = re.search(r"\d+$", raised.before)
    digits = figure[0] if figure else ""
    context = raised.before[: len(raised.before) - len(digits)][-before:] if before else ""
    ahead = "".join(rf"\s*{_match(sign)}" for sign in raised.after[:after])
    return re.compile(
        r"(?P<before>"
        + "".join(rf"{_match(sign)}\s*" for sign in context)
        + rf"(?<!\d){re.escape(digits)})\s?(?P<raised>{re.escape(raised.text)})(?!\d)(?={ahead})"
    )


def _match(sign: str) -> str:
    """A pattern for a character, which may have been raised already, or for white space."""
    if sign.isspace():
        return r"\s*"
    if sign in RAISED_SIGNS:
        return f"[{re.escape(sign)}{re.escape(raise_figures('1', sign))}]"
    return re.escape(sign)


def _raise(raised: Raised, match: re.Match[str]) -> str:
    following = match.string[match.end() : match.end() + 1]
    gap = " " if raised.is_parted and following.isalnum() else ""
    return match["before"] + raise_figures(raised.before, match["raised"]) + gap
