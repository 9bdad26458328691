"""Follows which part of an answer is code, as long as every reader of Markdown agrees about it.

Only how something is made harmless depends on this, and whether tags that name no forbidden address and names with dots
stay, which no reader loads or links in code (`links.py`).
"""

import re
from typing import Final

MAX_LINE: Final = 1_000
"""A longer line begins and ends no block."""
_FENCE: Final = re.compile(r"( *)(`{3,}|~{3,})(.*)")
_ODD_BREAK: Final = re.compile(r"\r(?!\n|\Z)|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""What only some readers take for the end of a line."""
_WORD: Final = re.compile(r" {0,3}[^\W\d_]{2,}[ ,]")
"""What begins a line of words, which marks of a fence behind it do not end."""
_TAG: Final = re.compile(r"[^\w<]*(?:\d+[.)]\s*)?<[A-Za-z/]")
"""What may begin a block of HTML, in a quote or a list too."""
_RAW_BLOCK: Final = re.compile(r"<(?:[!?]|/?(?:pre|script|style|textarea)\b)", re.IGNORECASE)
"""What begins a block of HTML that no empty line ends (CommonMark 4.6)."""

_HIDES_MARK: Final = re.compile(r"``|~~~|\\`|\$|<[A-Za-z/!?]|\][\[(:]|\[[\[^]|(?://|www\.)\S*`", re.IGNORECASE)
"""What takes a backtick into something else for some readers."""
_SPAN_END: Final = re.compile(r"(?:[^`\n\\<|$\]]|\](?![\[(:])){0,200}(`(?!`))?")
"""The rest of a code span that nothing reaches beyond."""


class CodeBlocks:
    """Reads an answer in pieces, as it goes out. After the first line that readers may take differently, nothing counts
    as code any longer.
    """

    def __init__(self) -> None:
        self._line = ""
        self._fence = ""
        self._indent = 0
        self._has_tag = False
        self._is_sure = True
        self._is_deep = False
        """Whether the block is indented so far that some readers take it for one of a list, others for words."""
        self._is_even = True
        """Whether no code span can go on from the line before."""

    @property
    def is_code(self) -> bool:
        """Whether the line under way is within a block of code; its first line is not."""
        # A line that begins further left ends the block if it is one of a list.
        return self._is_block and not self._is_deep and self._line.startswith(" " * self._indent)

    @property
    def is_prose(self) -> bool:
        """Whether the place under way is in no reader's code."""
        return self._is_sure and not self._fence and "`" not in self._line and not self._line.endswith("\r")

    @property
    def _is_block(self) -> bool:
        return self._is_sure and self._fence != "" and not self._line.endswith("\r")

    def is_span(self, text: str, at: int, *, final: bool) -> bool | None:
        """Whether the place after what went out, `text[at:]`, is within code on a line; None if more text is needed."""
        line = self._line
        if not self._is_sure or self._fence or not self._is_even or len(line) >= MAX_LINE or _HIDES_MARK.search(line):
            return False
        # A cell of a table has spans of its own.
        if not line.count("`") % 2 or not line.rpartition("|")[2].count("`") % 2:
            return False
        end = _SPAN_END.match(text, at)
        if end is None or (not final and end.end() == len(text)):
            return None
        return end[1] is not None

    def feed(self, text: str) -> None:
        """Adds a piece of the answer."""
        if not self._is_sure:
            return
        self._is_sure = not _ODD_BREAK.search(self._line[-1:] + text)
        *lines, rest = text.split("\n")
        for line in lines:
            if self._is_sure:
                self._read((self._line + line).removesuffix("\r"))
            self._line = ""
        line = self._line + rest
        self._line = line if len(line) <= MAX_LINE else line[:MAX_LINE] + line[-1]

    def _read(self, line: str) -> None:
        words = line.strip(" \t")
        marks = line.count("`")
        is_even = not marks % 2 and not (marks and (len(line) >= MAX_LINE or _HIDES_MARK.search(line)))
        self._is_even = not words or (self._is_even and is_even)
        if self._fence:
            self._read_code(line, words)
        elif not words:
            self._has_tag = False
        elif (fence := _FENCE.fullmatch(line)) is not None and not (fence[2][0] == "`" and "`" in fence[3]):
            # After a tag it may be a part of a block of HTML, which ends with an empty line.
            self._is_sure = not self._has_tag and len(line) < MAX_LINE
            self._indent, self._fence = len(fence[1]), fence[2]
            self._is_deep = self._indent > 3
        else:
            # A fence within a quote or behind the mark of a list begins a block there, whose end is not looked for.
            self._is_sure = _WORD.match(line) is not None or not ("```" in line or "~~~" in line)
            self._is_sure = self._is_sure and not _RAW_BLOCK.search(line)
            self._has_tag = self._has_tag or _TAG.match(line) is not None

    def _read_code(self, line: str, words: str) -> None:
        indent = len(line) - len(line.lstrip(" "))
        bare = words.strip()
        if bare and not bare.strip(self._fence[0]) and len(bare) >= len(self._fence):
            is_end = indent == self._indent if self._is_deep else indent <= 3
            self._is_sure = bare == words and is_end and not line[indent:].startswith("\t")
            self._fence = ""
        if words and indent < self._indent:
            self._is_sure = False
