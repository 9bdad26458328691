"""`CallArguments`: joins the pieces of a streamed tool call's arguments, in time linear in their length."""

import json
import re

from agent.core.models import JsonObject

_MARK = re.compile(r'\\.?|["{}\[\]]', re.DOTALL)
"""What says where a JSON value ends: brackets, the quotes around those that are text, escapes, also one that its piece
cuts off."""


class CallArguments:
    """The arguments of a call while their pieces are added.

    Some servers send an empty object before the pieces (Bedrock), the whole behind them, or with each piece all that
    came before.
    """

    def __init__(self) -> None:
        self.value: JsonObject | None = None
        """The object that they are so far; None while they are not a complete one."""
        self._begin()

    @property
    def is_empty(self) -> bool:
        """Whether there are no pieces."""
        return not self._pieces

    @property
    def text(self) -> str:
        """The JSON text so far."""
        return self._pieces[-1] if self._is_in_last else "".join(self._pieces)

    def add(self, piece: str) -> None:
        """Adds the next piece."""
        if not piece or (self.value is not None and piece.isspace()):
            return
        whole = read_object(piece)
        if whole is not None and whole == self.value:
            return
        if self.value == {}:
            self._begin()
        if self._pieces and not piece.startswith(self._pieces[-1]):
            self._is_growing = False
        self._pieces.append(piece)
        self.value = self._read_joined(piece)
        self._is_in_last = self.value is None and whole is not None and self._is_growing
        if self._is_in_last:
            self.value = whole

    def _begin(self) -> None:
        self._pieces: list[str] = []
        self._is_growing = True
        """Whether each piece begins with all of the one before it."""
        self._is_in_last = False
        """Whether the newest piece is the whole text."""
        self._depth = 0
        self._is_quoted = False
        self._is_escaped = False
        self._is_closed = False
        """Whether the outermost bracket has been closed: no later piece completes the text."""

    def _read_joined(self, piece: str) -> JsonObject | None:
        """The object that all pieces are with this one. They are parsed only once, at their last bracket: to parse
        them at each piece would take quadratic time."""
        if self._is_closed:
            return None
        mark = ""
        for match in _MARK.finditer(piece, int(self._is_escaped)):
            mark = match[0]
            if mark == '"':
                self._is_quoted = not self._is_quoted
            elif not self._is_quoted and mark[0] != "\\":
                self._depth += 1 if mark in "{[" else -1
                self._is_closed = self._is_closed or self._depth <= 0
        self._is_escaped = mark == "\\"
        return read_object("".join(self._pieces)) if self._is_closed else None


def read_object(text: str) -> JsonObject | None:
    """The JSON object that a text is; None for any other text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
