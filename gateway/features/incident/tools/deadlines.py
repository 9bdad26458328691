"""`extract_deadlines`: lists deadlines in the words of the text, each with the moment it means."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice

from pydantic import Field

from agent.core.models import DeferredModel, FrozenModel
from agent.tools import PlanHints, ToolContext, TypedTool
from gateway.features.incident.engine.due_phrases import find_due_phrases
from gateway.features.incident.engine.text import split_into_sentences

MAX_DEADLINES = 100


class ExtractDeadlinesInput(DeferredModel):
    """Arguments of `extract_deadlines`."""

    text: str = Field(max_length=1_000_000, description="the text; its first 100,000 characters count")
    now: datetime | None = Field(
        default=None, description="when the text was written, ISO 8601; relative times count from then (default: now)"
    )


class Deadline(FrozenModel):
    """A deadline. `due` is in UTC unless `now` has another offset."""

    text: str = Field(description="the words of the text")
    kind: str = Field(description="date, weekday, day, duration or time")
    due: datetime | None = Field(description="the moment; the end of the day where only a day is named")
    sentence: str


class ExtractDeadlinesOutput(DeferredModel):
    """The deadlines in the order of the text."""

    deadlines: list[Deadline]


class ExtractDeadlinesTool(TypedTool[ExtractDeadlinesInput, ExtractDeadlinesOutput]):
    name = "extract_deadlines"
    description = (
        "List the deadlines in a text (dates, `by Friday`, `within 4 hours`, `bis Freitag`) with the moment each one "
        "means; in English, German, Swedish and French."
    )
    is_opt_in = True
    keywords = ("deadline", "deadlines", "due", "date", "dates", "when", "schedule", "extract", "incident")
    hints = PlanHints(heading="Deadlines")

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__()
        self._clock = clock

    async def run(self, args: ExtractDeadlinesInput, context: ToolContext) -> ExtractDeadlinesOutput:
        now = args.now or self._clock()
        now = now if now.tzinfo else now.replace(tzinfo=UTC)
        return ExtractDeadlinesOutput(deadlines=await asyncio.to_thread(extract_deadlines, args.text, now))

    def format_text(self, output: ExtractDeadlinesOutput) -> str:
        if not output.deadlines:
            return (
                "No deadline was understood. Dates, weekdays, times and durations after words such as `by`, `until` or "
                "`within` are read, in English, German, Swedish and French."
            )
        return "\n".join(
            f"- {one.text}" + (f" ({one.due:%Y-%m-%d %H:%M %Z})" if one.due else "") + f": {one.sentence}"
            for one in output.deadlines
        )


def extract_deadlines(text: str, now: datetime) -> list[Deadline]:
    """The deadlines of a text that was written at `now`, which has an offset."""
    deadlines = (
        Deadline(
            text=sentence.text[one.start : one.end].strip(" ,.:"), kind=one.kind, due=one.due, sentence=sentence.text
        )
        for sentence in split_into_sentences(text)
        for one in find_due_phrases(sentence.text, now)
    )
    return list(islice(deadlines, MAX_DEADLINES))
