"""The requests that came with an `Idempotency-Key`, and the answers they had."""

import base64
import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from agent.core.custody import is_dead, worker_name
from agent.core.errors import AgentError, ConflictError
from agent.core.service import ENDED, new_run_id
from agent.core.statements import Statements

KEPT_SECONDS = 86_400.0
UNDER_WAY_SECONDS = 960.0
"""What has neither an answer nor a run by then died with its process, on another machine, and may be tried again."""
RUN_HEADER = "x-stepgate-run-id"
_WORKER = "worker"
_AT_REST = ENDED | {"awaiting_approval"}
"""Statuses of runs whose answer is there."""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer a request had."""

    status: int
    headers: list[list[str]]
    body: bytes


@dataclass(frozen=True, slots=True)
class BegunRequest:
    """A request that has to be carried out. `run_id` is the id that its run is to have, or has: with `began` its run
    was begun by a process that died before it could answer, and only the answer is missing."""

    run_id: str
    began: bool = False


class ReusedKeyError(AgentError):
    """Raised for a key that came with another body before."""

    code = "ERR_IDEMPOTENCY"


class IdempotencyStore:
    """The keys with their answers. Methods raise `StoreError`."""

    def __init__(self, statements: Statements, clock: Callable[[], float] = time.time) -> None:
        self._statements = statements
        self._clock = clock
        self._worker = worker_name()

    async def begin(self, who: str, key: str, digest: str) -> KeptAnswer | BegunRequest:
        """Note a request, with the id that its run will have: whatever becomes of this process, it is known which.

        Raises `ReusedKeyError` for another body, `ConflictError` while the first is under way."""
        now, begun = self._clock(), BegunRequest(new_run_id())
        await self._statements.write("DELETE FROM idempotency WHERE at < ?", now - KEPT_SECONDS)
        made = await self._statements.write(
            "INSERT INTO idempotency (owner, key, digest, status, headers, body, at) VALUES (?,?,?,0,?,'',?) "
            "ON CONFLICT (owner, key) DO NOTHING RETURNING key",
            who,
            key,
            digest,
            self._held(begun.run_id),
            now,
        )
        if made:
            return begun
        rows = await self._statements.read(
            "SELECT digest, status, headers, body, at FROM idempotency WHERE owner = ? AND key = ?", who, key
        )
        if not rows:  # its time was over in this very moment
            return await self.begin(who, key, digest)
        known, status, headers, body, at = rows[0]
        if known != digest:
            raise ReusedKeyError("Idempotency-Key: this key came with another request before; take a new one")
        if status == 0:
            return await self._unanswered(who, key, str(headers), begun, late=at < now - UNDER_WAY_SECONDS)
        if status < 0:
            run = dict(json.loads(headers)).get(RUN_HEADER)
            where = f": GET /v1/runs/{run}/events" if run else ""
            raise ConflictError(f"Idempotency-Key: the answer to this key was streamed, and is not kept{where}")
        return KeptAnswer(int(status), json.loads(headers), base64.b64decode(body))

    async def _unanswered(self, who: str, key: str, held: str, anew: BegunRequest, *, late: bool) -> BegunRequest:
        """What is to be done with a request that has no answer yet: its process may have died."""
        first = dict(json.loads(held or "[]"))
        run_id = str(first.get(RUN_HEADER, ""))
        runs = await self._statements.read("SELECT status FROM runs WHERE run_id = ?", run_id)
        if runs and runs[0][0] in _AT_REST:
            return BegunRequest(run_id, began=True)
        if not runs and (late or is_dead(str(first.get(_WORKER, "")), self._worker)):
            taken = await self._statements.write(
                "UPDATE idempotency SET headers = ?, at = ? WHERE owner = ? AND key = ? AND status = 0 AND headers = ? "
                "RETURNING key",
                self._held(anew.run_id),
                self._clock(),
                who,
                key,
                held,
            )
            if taken:
                return anew
        where = f": GET /v1/runs/{run_id}/events" if runs else ""
        raise ConflictError(f"Idempotency-Key: the first request with this key is still under way{where}")

    async def note(self, who: str, key: str, run_id: str) -> None:
        """Keep which run a request has begun, or answers, where it is another than `begin` told."""
        await self._statements.write(
            "UPDATE idempotency SET headers = ? WHERE owner = ? AND key = ? AND status = 0",
            self._held(run_id),
            who,
            key,
        )

    def _held(self, run_id: str) -> str:
        """What stands in the place of the answer's headers until there is one."""
        return json.dumps([[RUN_HEADER, run_id], [_WORKER, self._worker]])

    async def finish(self, who: str, key: str, status: int, headers: list[list[str]], body: bytes | None) -> None:
        """Keep the answer; without a body, only that there was one."""
        await self._statements.write(
            "UPDATE idempotency SET status = ?, headers = ?, body = ? WHERE owner = ? AND key = ?",
            status if body is not None else -1,
            json.dumps(headers),
            base64.b64encode(body or b"").decode(),
            who,
            key,
        )

    async def forget(self, who: str, key: str) -> None:
        """Let the request be tried again: it was refused before anything was done."""
        await self._statements.write("DELETE FROM idempotency WHERE owner = ? AND key = ?", who, key)
