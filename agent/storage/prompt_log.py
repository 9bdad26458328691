"""`PromptLog`: what was sent to models and what they replied, kept for some days where the operator wants it.

The messages are those that went out: without the secrets and the personal data that the room removes. The log of the
run holds none of them.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from agent.core.models import JsonObject
from agent.core.surrogates import replace_surrogates
from agent.storage.sql import SqlClient, SqlStatement

DAY_SECONDS: Final = 86_400
MAX_CHARS: Final = 400_000
"""Longest messages that are kept, as JSON; longer ones are cut."""


@dataclass(frozen=True, slots=True)
class KeptPrompt:
    """A call of a model: its messages as JSON text, and the reply. `at` is UTC seconds since 1970."""

    step_id: str | None
    purpose: str
    model: str
    messages: str
    reply: str
    at: float


class PromptLog:
    """Keeps prompts for `days`. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient, days: float, clock: Callable[[], float] = time.time) -> None:
        self._statements = statements
        self._days = days
        self._clock = clock

    async def add(
        self, run_id: str, step_id: str | None, purpose: str, model: str, messages: Sequence[JsonObject], reply: str
    ) -> None:
        """Keeps a call, and deletes those that are too old."""
        now = self._clock()
        text = json.dumps(messages, ensure_ascii=False)[:MAX_CHARS]
        values = (run_id, step_id, purpose, model, _clean(text), _clean(reply[:MAX_CHARS]), now)
        await self._statements.write_all(
            SqlStatement(
                "INSERT INTO model_prompts (run_id, step_id, purpose, model, messages, reply, at) "
                "VALUES (?,?,?,?,?,?,?)",
                values,
            ),
            SqlStatement("DELETE FROM model_prompts WHERE at < ?", (now - self._days * DAY_SECONDS,)),
        )

    async def list_prompts(self, run_id: str) -> list[KeptPrompt]:
        """The calls of a run that are kept, in order."""
        rows = await self._statements.read(
            "SELECT step_id, purpose, model, messages, reply, at FROM model_prompts WHERE run_id = ? AND at >= ? "
            "ORDER BY id",
            run_id, self._clock() - self._days * DAY_SECONDS,
        )  # fmt: skip
        return [KeptPrompt(*row) for row in rows]


def _clean(text: str) -> str:
    return replace_surrogates(text).replace("\x00", "")
