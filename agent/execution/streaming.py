"""Pieces of an answer as deltas of the log: the first at once, then one every `stream_coalesce_ms`."""

from time import monotonic
from typing import Literal

from agent.core.events import AnswerDelta
from agent.execution.run import Run
from agent.execution.shield import Outgoing

DeltaKind = Literal["text", "reasoning"]


class DeltaWriter:
    """Collects what a model streams and appends it in bigger pieces."""

    def __init__(self, run: Run, step_id: str | None = None, attempt: int | None = None) -> None:
        self._run = run
        self._step_id = step_id
        self._attempt = attempt
        self._interval = run.engine.settings.stream_coalesce_ms / 1000
        self._buffer: dict[DeltaKind, list[str]] = {"reasoning": [], "text": []}
        self._flushed = 0.0
        outgoing = Outgoing(run)
        self._outgoing, self._reasoning = outgoing.stream(), outgoing.stream()

    async def add(self, text: str, kind: DeltaKind = "text") -> None:
        """One more piece; appended with its neighbours when it is time."""
        if text:
            self._keep((self._outgoing if kind == "text" else self._reasoning).feed(text), kind)
        if monotonic() - self._flushed >= self._interval:
            await self.flush()

    async def end(self) -> None:
        """Append the rest: what the filters held back until now."""
        self._keep(self._reasoning.end(), "reasoning")
        self._keep(self._outgoing.end(), "text")
        await self.flush()

    def _keep(self, text: str, kind: DeltaKind) -> None:
        if text:
            self._buffer[kind].append(text)

    async def flush(self) -> None:
        """Append what has been collected."""
        deltas = [AnswerDelta(text="".join(parts), kind=kind) for kind, parts in self._buffer.items() if parts]
        if deltas:
            for parts in self._buffer.values():
                parts.clear()
            self._flushed = monotonic()
            await self._run.emit(*deltas, step_id=self._step_id, attempt=self._attempt)
