"""Writes a streamed answer to the log as deltas: the first at once, then one every `stream_coalesce_ms`."""

from time import monotonic
from typing import Literal

from agent.core.events import AnswerDelta, AnswerStarted
from agent.core.models import Source, Tier
from agent.llm.port import ModelChunk
from agent.policy.redaction.answers import StreamFilter
from agent.run_context.run import Run

DeltaKind = Literal["text", "reasoning", "refusal"]
WAS_THOUGHT = "the text so far was the model's thinking"


class DeltaWriter:
    """Collects the pieces of a model's stream and appends them in larger ones.

    With the first piece of text it appends those of `sources` that the text cites, with their numbers.
    """

    def __init__(
        self, run: Run, step_id: str | None = None, attempt: int | None = None, *, sources: tuple[Source, ...] = ()
    ) -> None:
        self._run = run
        self._sources = sources
        self._step_id = step_id
        self._attempt = attempt
        self._interval = run.engine.settings.stream_coalesce_ms / 1000
        self._buffer: dict[DeltaKind, list[str]] = {"reasoning": [], "text": [], "refusal": []}
        self._flushed = 0.0
        self._answer_filters = run.redaction.make_stream_filters()
        self._filters: dict[DeltaKind, StreamFilter] = {}
        """The filters of the kinds whose text has begun and not ended."""
        self._read: list[str] = []
        self._shown: list[str] = []
        """The text before and after its filters."""

    async def add(self, text: str, kind: DeltaKind = "text") -> None:
        """Adds one piece. Appends the collected text if the interval is over."""
        if text:
            self._buffer[kind].append(text)
        if monotonic() - self._flushed >= self._interval:
            await self.flush()

    async def restart(self) -> None:
        """Declares the text so far void: it was the model's thought."""
        self._buffer["text"].clear()
        self._filters.pop("text", None)
        self._read.clear()
        self._shown.clear()
        current = self._run.state.answer_start or AnswerStarted(tier=None, model=None, reason=WAS_THOUGHT)
        started = current.model_copy(update={"restarted": True})
        await self._run.note(started, step_id=self._step_id, attempt=self._attempt)

    async def end(self) -> None:
        """Appends the rest, including the text that the filters hold."""
        await self.flush(ends=True)
        self._run.redaction.note_streamed_text("".join(self._read), "".join(self._shown))

    async def flush(self, *, ends: bool = False) -> None:
        """Appends the collected text, as far as the filters release it.

        The filters run on whole batches: on every piece they took a third of a stream's CPU time. Reasoning ends where
        the text begins: clients show it in front of the text, and what a filter holds back would come after it.
        """
        deltas: list[AnswerDelta] = []
        has_text = bool(self._buffer["text"] or self._buffer["refusal"])
        for kind, parts in self._buffer.items():
            piece = "".join(parts)
            parts.clear()
            if piece and kind not in self._filters:
                self._filters[kind] = self._answer_filters.create()
            is_last = ends or (kind == "reasoning" and has_text)
            if is_last and kind in self._filters:
                text = self._filters.pop(kind).end(piece)
            else:
                text = self._filters[kind].feed(piece) if piece else ""
            if kind == "text":
                self._read.append(piece)
                self._shown.append(text)
            if text:
                cited = self._sources if kind == "text" else ()
                delta = AnswerDelta(text=text, kind=kind, sources=cited)
                deltas.append(self._run.redaction.mark_redacted(delta))
                self._sources = () if cited else self._sources
        if deltas:
            self._flushed = monotonic()
            await self._run.note_visibly(*deltas, step_id=self._step_id, attempt=self._attempt)


class SkillReplyStream:
    """Streams the text of a skill's model for one turn. It is the answer, unless the turn ends with a tool call."""

    def __init__(self, run: Run, step_id: str, attempt: int, tier: Tier) -> None:
        self._run = run
        self._step_id = step_id
        self._attempt = attempt
        self._tier = tier
        self._buffer = ""
        self._writer: DeltaWriter | None = None

    async def write(self, chunk: ModelChunk) -> None:
        """Writes one piece. Holds back text that may be a tool call in JSON."""
        piece = chunk.text or chunk.refusal
        if chunk.restarts:
            self._buffer = ""
            if self._writer is not None:
                await self.discard(WAS_THOUGHT)
                self._writer = None
        if self._writer is None:
            self._buffer += piece
            if self._buffer.lstrip()[:1] in ("", "{", "`"):
                return
            name = self._run.engine.models.get_model_name(self._tier, self._run.room)
            await self._emit_started(self._tier, name, "the skill of the room answers in its own words")
            self._writer = DeltaWriter(self._run, self._step_id, self._attempt)
            piece = self._buffer
        await self._writer.add(piece)

    async def end(self, *, answered: bool) -> None:
        """Ends the turn. Discards text before a tool call or a failure, because it is not the answer."""
        if self._writer is not None:
            await self._writer.end()
            if not answered:
                await self.discard("the text so far was not the answer")

    async def discard(self, reason: str) -> None:
        """Declares the written text void."""
        if self._run.state.answer_start is not None:
            await self._emit_started(None, None, reason)

    async def _emit_started(self, tier: Tier | None, model: str | None, reason: str) -> None:
        restarted = self._run.state.answer_start is not None
        started = AnswerStarted(tier=tier, model=model, reason=reason, restarted=restarted)
        await self._run.emit(started, step_id=self._step_id, attempt=self._attempt)
