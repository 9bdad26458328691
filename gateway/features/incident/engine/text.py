"""Prepares text for the incident tools: limits its length, and splits it into sentences that it contains word for
word."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from gateway.features.documents.engine.ingest.chunkers.document_layout import Span
from gateway.features.documents.engine.ingest.chunkers.splitting import split_sentences

MAX_READ_CHARS = 100_000
"""The part of a text that the tools read. No report is longer, but a pasted log may be."""
MAX_SENTENCE_CHARS = 1_000
"""Longer text without a full stop is data; only its beginning is used."""
MAX_BLOCK_CHARS = 5_000
"""A longer paragraph is a log without sentences."""
_WRAPPED_LINE_CHARS = 60
"""A line of at least so many characters that ends within a sentence continues on the next line."""
_LINE = re.compile(r"[^\n\r\u2028\u2029]+")
_BULLET = re.compile(r"\s*(?:[-*+\u2022]|\d{1,3}[.)]|\[[ xX]?\]|#{1,6}|>)\s+")
_STARTS_NEW_BLOCK = re.compile(
    r"\s*(?:(?:[-*+\u2022]|\d{1,3}[.)]|\[[ xX]?\]|#{1,6}|>)\s|\||[A-Z][A-Za-z ]{1,30}:\s|\Z)"
)

_STACK_FRAME = re.compile(r"(?:at\s\S+\(.{0,200}\)|File \".{1,400}\", line \d+.{0,200}|\.\.\. \d+ more)\Z")
"""A line of a stack trace of Java, JavaScript or Python."""
_NATURAL_WORD = re.compile(r"[\"'(\[]{0,2}[^\W\d_]+(?:['\u2019-][^\W\d_]+){0,3}[.,;:!?)\"'\]]{0,3}")
_MIN_TOKENS = 6
"""A shorter line may be a service and its status."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence on one line; `raw` is the original text."""

    text: str
    raw: str


def cut_text(text: str) -> str:
    """The part of a text that is read."""
    return text[:MAX_READ_CHARS]


def remove_pasted_logs(report: str) -> str:
    """The search query for a report: without pasted logs and stack traces, and without repeated lines.

    Their numbers and names are many, and no document contains them. A first line by itself is the title and stays.
    Returns the report itself if nothing else is left.
    """
    title, *lines = dict.fromkeys(line.strip() for line in cut_text(report).strip().splitlines()) or [""]
    kept_lines = [line for line in lines if not _is_data(line)]
    if not _is_data(title) or not lines or lines[0] in kept_lines[:1]:
        kept_lines.insert(0, title)
    return "\n".join(kept_lines).strip() or report


def _is_data(line: str) -> bool:
    """Whether a line is a stack frame, or has fewer words than numbers, ids and paths."""
    if _STACK_FRAME.match(line):
        return True
    if not line.isascii():  # `re` does not count vowel signs as letters
        line = "".join(one for one in line if not unicodedata.category(one).startswith("M"))
    tokens = line.split()
    return len(tokens) >= _MIN_TOKENS and 2 * sum(_NATURAL_WORD.fullmatch(token) is not None for token in tokens) < len(
        tokens
    )


def split_into_sentences(text: str) -> list[Sentence]:
    """The sentences in order, without list and heading marks. Wrapped lines are joined."""
    return list(_iterate_sentences(cut_text(text)))


def _iterate_sentences(text: str) -> Iterator[Sentence]:
    for start, end in _iterate_blocks(text):
        while (bullet := _BULLET.match(text, start, end)) is not None:
            start = bullet.end()  # noqa: PLW2901
        for begin, stop in pairwise([start, *(span.end for span in split_sentences(text, Span(start, end)))]):
            raw = text[begin : min(stop, begin + MAX_SENTENCE_CHARS)].strip()
            if raw:
                yield Sentence(" ".join(raw.split()), raw)


def _iterate_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yields the spans of lines; lines that are only wrapped are joined."""
    block: tuple[int, int] | None = None
    for line in _LINE.finditer(text):
        if (
            block is not None
            and block[1] - block[0] < MAX_BLOCK_CHARS
            and _continues_sentence(text[block[0] : block[1]], text[block[1] : line.start()], line[0])
        ):
            block = (block[0], line.end())
            continue
        if block is not None:
            yield block
        block = line.span()
    if block is not None:
        yield block


def _continues_sentence(before: str, between: str, line: str) -> bool:
    """Whether a line continues the sentence before it."""
    if (
        between not in ("\n", "\r\n")
        or _STARTS_NEW_BLOCK.match(line)
        or before.rstrip().endswith((".", "!", "?", ":", "|"))
    ):
        return False
    last = before[before.rfind("\n") + 1 :]
    return len(last) >= _WRAPPED_LINE_CHARS or (line.lstrip()[:1].islower() and len(last) >= _WRAPPED_LINE_CHARS // 2)
