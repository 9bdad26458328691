"""Raised and lowered figures of a PDF's page in its blocks: liteparse writes "40" with the raised mark of a note "1" as
401."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from agent.text.superscripts import RAISED_SIGNS, write_fractions, write_moved
from gateway.features.documents.engine.ingest.parsers.draft import Block
from gateway.features.documents.engine.ingest.parsers.pdfium_text import MovedFigure

_CONTEXTS = ((8, 4), (3, 2), (0, 0))
"""How many characters before the figure and behind what is moved must be the same; less where a table's cell ends."""


def move_in_blocks(blocks: Sequence[Block], moved: Iterable[MovedFigure]) -> list[Block]:
    """The blocks of a page with its moved figures as such; both are in reading order, or nearly so."""
    changed = list(blocks)
    for one in moved:
        for index, pattern in _iter_places(one, len(blocks)):
            text, count = pattern.subn(partial(_move, one), changed[index].text, count=1)
            if count:
                changed[index] = changed[index]._replace(text=write_fractions(text))
                break
    return changed


def _iter_places(moved: MovedFigure, blocks: int) -> Iterator[tuple[int, re.Pattern[str]]]:
    for context in _CONTEXTS:
        if not context[0] and not moved.before[-1:].isdigit():  # a figure without what stands before it is anywhere
            continue
        pattern = _make_pattern(moved, *context)
        yield from ((index, pattern) for index in range(blocks))


def _make_pattern(moved: MovedFigure, before: int, after: int) -> re.Pattern[str]:
    figure = re.search(r"\d+$", moved.before)
    digits = figure[0] if figure else ""
    context = moved.before[: len(moved.before) - len(digits)][-before:] if before else ""
    end = "" if moved.after[:1].isdigit() else r"(?!\d)"
    # One pattern for white space between two characters: several make it slow where most of a text is alike.
    ahead = "".join(rf"\s*{_match(sign)}" for sign in moved.after[:after] if not sign.isspace())
    return re.compile(
        r"(?P<before>"
        + (r"\s*" if context.isspace() else "".join(rf"{_match(sign)}\s*" for sign in context if not sign.isspace()))
        + rf"(?<!\d){re.escape(digits)})\s?(?P<moved>{re.escape(moved.text)}){end}(?={ahead})"
    )


def _match(sign: str) -> str:
    """A pattern for a character, which may have been moved already."""
    if sign in RAISED_SIGNS:
        return f"[{re.escape(''.join({sign, write_moved(1, '1', sign, ''), write_moved(-1, '1', sign, '')}))}]"
    return re.escape(sign)


def _move(moved: MovedFigure, match: re.Match[str]) -> str:
    following = match.string[match.end() : match.end() + 1]
    figure = write_moved(moved.rise, moved.before, match["moved"], moved.after)
    gap = " " if (moved.is_parted or figure[-1:].isspace()) and following.isalnum() else ""
    return match["before"] + figure.rstrip() + gap
