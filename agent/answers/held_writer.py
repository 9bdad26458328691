"""`HeldWriter`: an answer's stream whose beginning is shown once nothing in it lacks evidence."""

import re
from collections.abc import Callable

from agent.run_context.answer_stream import DeltaKind, DeltaWriter

HELD_CHARS = 40
"""The beginning is held to the end of the first sentence from this character on."""
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")


class HeldWriter:
    """Holds the first sentence until `has_evidence` says that results explain it.

    A beginning without evidence is never shown, nor is what follows it: nothing has to be taken back when the planner
    then calls for what is missing."""

    def __init__(self, writer: DeltaWriter, has_evidence: Callable[[str], bool]) -> None:
        self._writer = writer
        self._has_evidence = has_evidence
        self._held = ""
        self._is_open = False
        self._is_refused = False

    async def add(self, text: str, kind: DeltaKind = "text") -> None:
        """Adds one piece. Reasoning and refusals are shown at once."""
        if kind != "text" or self._is_open:
            await self._writer.add(text, kind)
            return
        self._held += text
        if _SENTENCE_END.search(self._held, HELD_CHARS):
            await self._release()

    async def restart(self) -> None:
        """Declares the text so far void: it was the model's thought."""
        if self._is_open:
            await self._writer.restart()
        self._held, self._is_open, self._is_refused = "", False, False

    async def end(self) -> None:
        """Shows a short answer that has evidence, and ends the stream."""
        if not self._is_open:
            await self._release()
        await self._writer.end()

    async def _release(self) -> None:
        if self._is_refused or not self._has_evidence(self._held):
            self._is_refused = True
            return
        self._is_open = True
        await self._writer.add(self._held)
