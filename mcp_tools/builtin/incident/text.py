"""A text as the incident tools read it: cut to what is read, divided into sentences that stand in it word for word."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from agent.knowledge.chunkers.cutting import sentences
from agent.knowledge.chunkers.document import Span

READ_CHARS = 100_000
"""What the tools read of a text. No report is longer; a log that is pasted into one may be."""
SENTENCE_CHARS = 1_000
"""Longer runs without a full stop are data; their beginning stands for them."""
BLOCK_CHARS = 5_000
"""A longer paragraph is a log that ends no sentence."""
_WRAPPED = 60
"""A line of so many characters that ends in the middle of a sentence goes on in the next one."""
_LINE = re.compile(r"[^\n\r\u2028\u2029]+")
_BULLET = re.compile(r"\s*(?:[-*+\u2022]|\d{1,3}[.)]|\[[ xX]?\]|#{1,6}|>)\s+")
_STARTS_ANEW = re.compile(r"\s*(?:(?:[-*+\u2022]|\d{1,3}[.)]|\[[ xX]?\]|#{1,6}|>)\s|\||[A-Z][A-Za-z ]{1,30}:\s|\Z)")

_FRAME = re.compile(r"(?:at\s\S+\(.{0,200}\)|File \".{1,400}\", line \d+.{0,200}|\.\.\. \d+ more)\Z")
"""A line of a stack, as Java, JavaScript and Python write it."""
_SPOKEN = re.compile(r"[\"'(\[]{0,2}[^\W\d_]+(?:['\u2019-][^\W\d_]+){0,3}[.,;:!?)\"'\]]{0,3}")
_LEAST_TOKENS = 6
"""A shorter line may well be a service and its status."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in one line, `raw` as it is written, and whether it begins an item of a list."""

    text: str
    raw: str
    item: bool = False


def read(text: str) -> str:
    """The part of a text that is read."""
    return text[:READ_CHARS]


def own_words(report: str) -> str:
    """What is searched for of a report: without the lines of a log or a stack that were pasted into it, whose numbers
    and names are many and stand in no document, and with what is said again and again said once. A first line by itself
    is the title, and stays. The report itself where there is nothing else."""
    title, *lines = dict.fromkeys(line.strip() for line in read(report).strip().splitlines()) or [""]
    kept = [line for line in lines if not _is_data(line)]
    if not _is_data(title) or not lines or lines[0] in kept[:1]:
        kept.insert(0, title)
    return "\n".join(kept).strip() or report


def _is_data(line: str) -> bool:
    """Whether a line is a frame of a stack, or holds fewer words than numbers, ids and paths."""
    if _FRAME.match(line):
        return True
    if not line.isascii():  # vowel signs are no letters to `re`
        line = "".join(one for one in line if not unicodedata.category(one).startswith("M"))
    tokens = line.split()
    return len(tokens) >= _LEAST_TOKENS and 2 * sum(_SPOKEN.fullmatch(token) is not None for token in tokens) < len(
        tokens
    )


def sentences_of(text: str) -> list[Sentence]:
    """The sentences in their order, without the marks of lists and headings. Lines that were only wrapped are one."""
    return list(_sentences(read(text)))


def _sentences(text: str) -> Iterator[Sentence]:
    for start, end in _blocks(text):
        item = False
        while (bullet := _BULLET.match(text, start, end)) is not None:
            start, item = bullet.end(), True  # noqa: PLW2901
        for begin, stop in pairwise([start, *(span.end for span in sentences(text, Span(start, end)))]):
            raw = text[begin : min(stop, begin + SENTENCE_CHARS)].strip()
            if raw:
                yield Sentence(" ".join(raw.split()), raw, item)
                item = False


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Lines, those that a line's end only wraps joined with the next."""
    block: tuple[int, int] | None = None
    for line in _LINE.finditer(text):
        if (
            block is not None
            and block[1] - block[0] < BLOCK_CHARS
            and _goes_on(text[block[0] : block[1]], text[block[1] : line.start()], line[0])
        ):
            block = (block[0], line.end())
            continue
        if block is not None:
            yield block
        block = line.span()
    if block is not None:
        yield block


def _goes_on(before: str, between: str, line: str) -> bool:
    """Whether a line goes on with the sentence of what stands before it."""
    if between not in ("\n", "\r\n") or _STARTS_ANEW.match(line) or before.rstrip().endswith((".", "!", "?", ":", "|")):
        return False
    last = before[before.rfind("\n") + 1 :]
    return len(last) >= _WRAPPED or (line.lstrip()[:1].islower() and len(last) >= _WRAPPED // 2)
