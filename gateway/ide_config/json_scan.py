"""Parses JSON with the position of every value, so that a file can be changed at one place only.

With `comments`, also JSON as VS Code and Zed read it: `//` and `/* */` comments, and a comma after the last entry.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Final

MAX_DEPTH: Final = 200
_SCALAR = re.compile(
    r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null'
)
_SPACE = re.compile(r"[ \t\r\n]*")
_BLANK = re.compile(r"[ \t]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)


class MalformedJsonError(ValueError):
    """The text is not JSON as its reader expects it. The message names line and column."""


@dataclass(slots=True)
class Node:
    """A value and its place in the text: `text[start:end]`."""

    start: int
    end: int = 0
    members: dict[str, "Node"] | None = None
    """The members of an object; None for other values. Of members with one key the last counts, as for readers."""
    entries: list["Node"] | None = None
    """The entries of an array; None for other values."""
    last: "Node | None" = None
    """The last value in an object or array."""
    comma: int | None = None
    """The place of a comma after the last value, if there is one."""


@dataclass(slots=True)
class JsonScanner:
    """Parses one text. `comments`: whether comments and a last comma are allowed."""

    text: str
    comments: bool
    _at: int = field(default=0)

    def scan(self) -> Node:
        """The root. Raises `MalformedJsonError`."""
        self._skip_space()
        root = self._scan_value(0)
        self._skip_space()
        if self._at < len(self.text):
            raise self._make_error("there is text after the end")
        return root

    def is_blank(self) -> bool:
        """Whether there is no value, only white space and comments."""
        self._skip_space()
        return self._at == len(self.text)

    def find_line_end(self, start: int) -> int:
        """The place after the comments that follow `start` in its line; `start` if there are none."""
        at = end = start
        while match := _BLANK.match(self.text, at):
            comment = _COMMENT.match(self.text, match.end()) if self.comments else None
            if comment is None or "\n" in comment.group():
                return end
            at = end = comment.end()
        return end

    def _scan_value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self._make_error("it is nested too deeply")
        opening = self.text[self._at : self._at + 1]
        if opening in ("{", "["):
            return self._scan_container(depth, closing="}" if opening == "{" else "]")
        match = _SCALAR.match(self.text, self._at)
        if match is None:
            raise self._make_error("a value is missing" if opening else "it ends too early")
        node = Node(self._at, match.end())
        self._at = match.end()
        return node

    def _scan_container(self, depth: int, closing: str) -> Node:
        node = Node(self._at, members={}) if closing == "}" else Node(self._at, entries=[])
        self._at += 1
        self._skip_space()
        while self.text[self._at : self._at + 1] != closing:
            if node.last is not None and node.comma is None:
                raise self._make_error(f"a comma or {closing} is missing")
            if node.members is not None:
                key = self._scan_key()
                node.members[key] = node.last = self._scan_value(depth + 1)
            elif node.entries is not None:
                node.last = self._scan_value(depth + 1)
                node.entries.append(node.last)
            self._skip_space()
            node.comma = self._at if self.text[self._at : self._at + 1] == "," else None
            if node.comma is not None:
                self._at += 1
                self._skip_space()
        if node.comma is not None and not self.comments:
            raise self._make_error("there is a comma after the last entry")
        self._at += 1
        node.end = self._at
        return node

    def _scan_key(self) -> str:
        match = _SCALAR.match(self.text, self._at)
        if match is None or not match.group().startswith('"'):
            raise self._make_error("a key in double quotes is missing")
        try:
            key = str(json.loads(match.group()))
        except ValueError as error:
            raise self._make_error("a key has an invalid escape") from error
        self._at = match.end()
        self._skip_space()
        if self.text[self._at : self._at + 1] != ":":
            raise self._make_error("a colon is missing")
        self._at += 1
        self._skip_space()
        return key

    def _skip_space(self) -> None:
        while True:
            space = _SPACE.match(self.text, self._at)
            self._at = space.end() if space else self._at
            comment = _COMMENT.match(self.text, self._at) if self.comments else None
            if comment is None:
                return
            self._at = comment.end()

    def _make_error(self, what: str) -> MalformedJsonError:
        line = self.text.count("\n", 0, self._at) + 1
        column = self._at - self.text.rfind("\n", 0, self._at)
        return MalformedJsonError(f"line {line}, column {column}: {what}")
