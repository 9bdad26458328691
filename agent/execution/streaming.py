"""Pieces of an answer as deltas of the log: the first at once, then one every `stream_coalesce_ms`."""

from time import monotonic
from typing import Literal

from agent.core.events import AnswerDelta, AnswerStarted
from agent.core.models import Source, Tier
from agent.execution.release import Outgoing
from agent.execution.run import Run

DeltaKind = Literal["text", "reasoning"]


class DeltaWriter:
    """Collects what a model streams and appends it in bigger pieces. `sources`, where they are known, go with the
    first piece of the text: those that it cites, as it numbers them."""

    def __init__(
        self, run: Run, step_id: str | None = None, attempt: int | None = None, *, sources: tuple[Source, ...] = ()
    ) -> None:
        self._run = run
        self._sources = sources
        self._step_id = step_id
        self._attempt = attempt
        self._interval = run.engine.settings.stream_coalesce_ms / 1000
        self._buffer: dict[DeltaKind, list[str]] = {"reasoning": [], "text": []}
        self._flushed = 0.0
        outgoing = Outgoing(run)
        self._filters = {"reasoning": outgoing.stream(), "text": outgoing.stream()}

    async def add(self, text: str, kind: DeltaKind = "text") -> None:
        """One more piece; appended with its neighbours when it is time."""
        if text:
            self._buffer[kind].append(text)
        if monotonic() - self._flushed >= self._interval:
            await self.flush()

    async def end(self) -> None:
        """Append the rest: what the filters held back until now."""
        await self.flush(ends=True)

    async def flush(self, *, ends: bool = False) -> None:
        """Append what has been collected, as far as the filters let it out: they look at whole batches, since a look
        at each of a model's pieces took a third of a stream's CPU."""
        deltas: list[AnswerDelta] = []
        for kind, parts in self._buffer.items():
            piece, outgoing = "".join(parts), self._filters[kind]
            parts.clear()
            text = (outgoing.feed(piece) if piece else "") + (outgoing.end() if ends else "")
            if text:
                cited = self._sources if kind == "text" else ()
                deltas.append(AnswerDelta(text=text, kind=kind, sources=cited))
                self._sources = () if cited else self._sources
        if deltas:
            self._flushed = monotonic()
            append = self._run.emit if self._run.following else self._run.note
            await append(*deltas, step_id=self._step_id, attempt=self._attempt)


class Voice:
    """What a skill's model says in one turn, as it comes: the answer, unless it ends in a call of a tool."""

    def __init__(self, run: Run, step_id: str, attempt: int, tier: Tier) -> None:
        self._run = run
        self._step_id = step_id
        self._attempt = attempt
        self._tier = tier
        self._held = ""
        self._writer: DeltaWriter | None = None

    async def say(self, piece: str) -> None:
        """One more piece. What may be a call that a small model writes as text is held back."""
        if self._writer is None:
            self._held += piece
            if self._held.lstrip()[:1] in ("", "{", "`"):
                return
            name = self._run.engine.models.name(self._tier, self._run.room)
            await self._start(self._tier, name, "the skill of the room answers in its own words")
            self._writer = DeltaWriter(self._run, self._step_id, self._attempt)
            piece = self._held
        await self._writer.add(piece)

    async def end(self, *, answered: bool) -> None:
        """The turn is over; what was said before a tool is called, or before a failure, is not the answer."""
        if self._writer is not None:
            await self._writer.end()
            if not answered:
                await self.take_back("what was said before was not the answer")

    async def take_back(self, reason: str) -> None:
        """What has been said so far is void."""
        if self._run.state.answering is not None:
            await self._start(None, None, reason)

    async def _start(self, tier: Tier | None, model: str | None, reason: str) -> None:
        restarted = self._run.state.answering is not None
        started = AnswerStarted(tier=tier, model=model, reason=reason, restarted=restarted)
        await self._run.emit(started, step_id=self._step_id, attempt=self._attempt)
