"""The forms of a memory: as routes and commands send it, as tools show it, and as a model saves it.

A field of a memory is defined in `Memory` and stored in its payload (`agent/run_context/memory.py`). It is added here
to each form that has it.
"""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from agent.core.models import DeferredModel
from agent.core.record_item import RecordItem
from agent.run_context.memory import MAX_CHARS, Kind, Memory
from agent.tools import declare_roles

SAVE_ROLES = declare_roles(text="content")
"""The roles of `MemorySaveInput`."""
SCORE_DIGITS = 3
"""Decimals of a score that are shown."""


class MemoryEntry(RecordItem):
    """A memory. `score` is its cosine similarity to the query."""

    id: str
    text: str
    kind: Kind
    source: str
    saved_at: datetime = Field(validation_alias="at")
    from_outside: bool = Field(validation_alias="tainted")
    score: Annotated[float | None, AfterValidator(lambda score: score and round(score, SCORE_DIGITS))] = None


class FoundMemory(DeferredModel):
    """A memory that was found."""

    id: str
    text: str
    score: float
    source: str
    saved_at: str
    from_outside: bool


class MemorySaveInput(DeferredModel):
    """Arguments of `memory_save`."""

    text: str = Field(min_length=1, max_length=MAX_CHARS, description="one fact, complete in itself")


def to_found_memory(memory: Memory) -> FoundMemory:
    """A memory as tools show it. One that no query found scores 0."""
    return FoundMemory(
        id=memory.id,
        text=memory.text,
        score=round(memory.score or 0.0, SCORE_DIGITS),
        source=memory.source,
        saved_at=datetime.fromtimestamp(memory.at, UTC).isoformat(timespec="seconds"),
        from_outside=memory.tainted,
    )
