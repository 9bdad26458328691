"""Takes calls out of an answer that is nothing else, also from a stream: a model that is trained on tools may write one
where its answer should be. It is an empty reply, as one of native calls is, and never executed.
"""

from collections.abc import Collection

from agent.llm.call_forms import CALL_OPENING, list_called_names
from agent.llm.call_objects import match_tool_name

_DECIDED_CHARS = 64
"""From here on, a text that does not begin with a call is passed on."""
_FIRST_CHARS = "<[>{`"
"""What calls begin with."""
_TEMPLATE = ("<", "[TOOL_CALLS]")


class StrayCalls:
    """Passes an answer on, unless it begins with a call: then it is held to its end.

    `tools` are the names of those that count; with `takes_any`, calls in the tokens of a template count whatever they
    name.
    """

    def __init__(self, tools: Collection[str], *, takes_any: bool) -> None:
        self._tools = tools
        self._takes_any = takes_any
        self._held: list[str] = []
        self._is_call: bool | None = None
        """None while nobody can say."""

    def feed(self, piece: str) -> str:
        """The part of the answer up to this piece that can be shown and was not returned before."""
        if self._is_call is False or not (self._held or piece.strip()):  # white space ahead decides nothing
            return piece
        self._held.append(piece)
        if self._is_call is None:
            self._is_call = self._begins_with_call()
        return self._release() if self._is_call is False else ""

    def end(self) -> str:
        """The rest; "" for calls."""
        text = "".join(self._held).lstrip()
        names = list_called_names(text) if self._is_call is not False else []
        is_template = self._takes_any and text.startswith(_TEMPLATE)
        if any(is_template or match_tool_name(name, self._tools) is not None for name in names):
            self._held.clear()
        return self._release()

    def _begins_with_call(self) -> bool | None:
        text = "".join(self._held).lstrip()
        if CALL_OPENING.match(text) is not None:
            return True
        return None if text[:1] in _FIRST_CHARS and len(text) < _DECIDED_CHARS else False

    def _release(self) -> str:
        released = "".join(self._held)
        self._held.clear()
        return released
