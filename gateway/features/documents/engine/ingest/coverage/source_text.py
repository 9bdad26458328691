"""`SourceText`: what a file shows, by kind, as it is counted for coverage."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Unit = Literal["words", "characters", "cells"]

_WORD = re.compile(
    # Scripts without spaces between words: each character counts.
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
    r"|[^\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)


_UNSEEN = re.compile("[\u00ad\ufeff]")
"""Soft hyphens and byte order marks, which nobody sees in a word."""


def split_words(text: str) -> list[str]:
    """The words of a text in Unicode's compatibility form, case folded."""
    return _WORD.findall(unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).casefold())


class Cell(NamedTuple):
    """A cell of a workbook as it is stored: a text, or a number (also of a date or a boolean).

    `format` is the code of a number that may be shown in words (`"none"`, `mmm`) or without its sign (`0;0`).
    """

    text: str = ""
    number: float | None = None
    format: str = ""


def count_letters(text: str) -> Counter[str]:
    """Counts how often each letter and digit is in a text, in its compatibility form, case folded."""
    return Counter(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


@dataclass
class SourceText:
    """The words of a file by kind ("text", "footnote", "chart").

    `loose` words are compared by their characters where a document has them in other words: the words of an equation,
    say. `characters` are those of a PDF, where only gaps separate words; `cells` are those of a workbook. `omitted`
    counts what is left out on purpose; `optional` words are counted there if a document lacks them.
    """

    unit: Unit = "words"
    words: dict[str, Counter[str]] = field(default_factory=dict)
    loose: dict[str, Counter[str]] = field(default_factory=dict)
    omitted: Counter[str] = field(default_factory=Counter)
    optional: dict[str, Counter[str]] = field(default_factory=dict)
    characters: dict[str, Counter[str]] = field(default_factory=dict)
    cells: dict[str, Counter["Cell"]] = field(default_factory=dict)
    list_unseen: Callable[[], Iterable[str]] | None = None
    """The characters that nobody sees: counted as left out where a document lacks them. Asked only then."""

    def add(self, kind: str, text: str) -> None:
        """Counts the words of a piece of text; words do not go on from one piece to the next."""
        if words := split_words(text):
            self.words.setdefault(kind, Counter()).update(words)

    def add_loose(self, kind: str, text: str) -> None:
        """Counts words that are compared by their characters."""
        if words := split_words(text):
            self.loose.setdefault(kind, Counter()).update(words)

    def add_characters(self, kind: str, text: str) -> None:
        """Counts the letters and digits of a text."""
        if letters := count_letters(text):
            self.characters.setdefault(kind, Counter()).update(letters)

    def add_cell(self, kind: str, cell: Cell) -> None:
        """Counts a cell."""
        self.cells.setdefault(kind, Counter())[cell] += 1

    def omit(self, kind: str, text: str) -> None:
        """Counts words that no reader should find."""
        if words := split_words(text):
            self.omitted[kind] += len(words)
