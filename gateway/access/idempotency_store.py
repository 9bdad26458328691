"""The store of requests with an `Idempotency-Key` and of their responses."""

import base64
import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from agent.core.errors import ConflictError, RequestError
from agent.core.models import ENDED_STATUSES
from agent.runs.run_worker import is_dead_worker, make_worker_name
from agent.runs.service import make_run_id
from agent.storage.sql import SqlClient

RETENTION_SECONDS = 86_400.0
START_TIMEOUT_SECONDS = 960.0
"""After this time, a request without response and run has died with its process on another machine and may be
repeated.
"""
RUN_HEADER = "x-stepgate-run-id"
PLACE_HEADER = "location"
"""Where what the request has made is found."""
_WORKER = "worker"
_ANSWERED_STATUSES = ENDED_STATUSES | {"awaiting_approval"}
"""Statuses of runs that have an answer."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The response a request had."""

    status: int
    headers: list[list[str]]
    body: bytes


@dataclass(frozen=True, slots=True)
class StartedRequest:
    """A request that must be carried out. `run_id` is the id of its run.

    With `has_run`, a process that died before it could answer has already started the run; only the answer is missing.
    """

    run_id: str
    has_run: bool = False


class ReusedKeyError(RequestError):
    """Raised for a key that was used before with another body."""

    code = "ERR_IDEMPOTENCY"


class IdempotencyStore:
    """Keys with their responses. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float] = time.time) -> None:
        self._statements = statements
        self._clock = clock
        self._worker = make_worker_name()

    async def begin_request(self, who: str, key: str, digest: str) -> StoredResponse | StartedRequest:
        """Records a request with the id of its run, so that the id is known even if this process dies.

        Returns the stored response of an earlier request with this key. Raises `ReusedKeyError` if the body differs,
        and `ConflictError` while the first request is in progress.
        """
        now, request = self._clock(), StartedRequest(make_run_id())
        await self._statements.write("DELETE FROM idempotency WHERE at < ?", now - RETENTION_SECONDS)
        made = await self._statements.write(
            "INSERT INTO idempotency (owner, key, digest, status, headers, body, at) VALUES (?,?,?,0,?,'',?) "
            "ON CONFLICT (owner, key) DO NOTHING RETURNING key",
            who,
            key,
            digest,
            self._make_pending_headers(request.run_id),
            now,
        )
        if made:
            return request
        rows = await self._statements.read(
            "SELECT digest, status, headers, body, at FROM idempotency WHERE owner = ? AND key = ?", who, key
        )
        if not rows:  # it has expired in this moment
            return await self.begin_request(who, key, digest)
        stored_hash, status, headers, body, at = rows[0]
        if stored_hash != digest:
            raise ReusedKeyError("Idempotency-Key: this key was used for another request; use a new key")
        if status == 0:
            return await self._resume_unanswered(who, key, str(headers), request, late=at < now - START_TIMEOUT_SECONDS)
        if status < 0:
            replayed = dict(json.loads(headers))
            if place := replayed.get(PLACE_HEADER):
                raise ConflictError(
                    f"Idempotency-Key: the first request with this key created {place}; its answer is not stored"
                )
            run = replayed.get(RUN_HEADER)
            where = f": GET /v1/runs/{run}/events" if run else ""
            raise ConflictError(
                f"Idempotency-Key: the answer to this key was streamed or deleted and is not stored{where}"
            )
        return StoredResponse(int(status), json.loads(headers), base64.b64decode(body))

    async def _resume_unanswered(
        self, who: str, key: str, held: str, anew: StartedRequest, *, late: bool
    ) -> StartedRequest:
        """Decides how to carry on with a request that has no answer yet: its process may have died."""
        first = dict(json.loads(held or "[]"))
        run_id = str(first.get(RUN_HEADER, ""))
        runs = await self._statements.read("SELECT status FROM runs WHERE run_id = ?", run_id)
        if runs and runs[0][0] in _ANSWERED_STATUSES:
            return StartedRequest(run_id, has_run=True)
        if not runs and (late or is_dead_worker(str(first.get(_WORKER, "")), self._worker)):
            claimed_rows = await self._statements.write(
                "UPDATE idempotency SET headers = ?, at = ? WHERE owner = ? AND key = ? AND status = 0 AND headers = ? "
                "RETURNING key",
                self._make_pending_headers(anew.run_id),
                self._clock(),
                who,
                key,
                held,
            )
            if claimed_rows:
                return anew
        where = f": GET /v1/runs/{run_id}/events" if runs else ""
        raise ConflictError(f"Idempotency-Key: the first request with this key is still in progress{where}")

    async def record_run(self, who: str, key: str, run_id: str) -> None:
        """Records the run of a request if it is another one than `begin_request` returned."""
        await self._statements.write(
            "UPDATE idempotency SET headers = ? WHERE owner = ? AND key = ? AND status = 0",
            self._make_pending_headers(run_id),
            who,
            key,
        )

    def _make_pending_headers(self, run_id: str) -> str:
        """The placeholder of the response's headers until there is one."""
        return json.dumps([[RUN_HEADER, run_id], [_WORKER, self._worker]])

    async def store_response(
        self, who: str, key: str, status: int, headers: list[list[str]], body: bytes | None
    ) -> None:
        """Stores the response; without a body, only that there was one. One whose run was deleted meanwhile is not."""
        await self._statements.write(
            "UPDATE idempotency SET status = ?, headers = ?, body = ? WHERE owner = ? AND key = ? AND status = 0",
            status if body is not None else -1,
            json.dumps(headers),
            base64.b64encode(body or b"").decode(),
            who,
            key,
        )

    async def release_request(self, who: str, key: str) -> None:
        """Lets a request that failed without an answer be sent again, unless it has started a run: that answers it."""
        rows = await self._statements.read(
            "SELECT headers FROM idempotency WHERE owner = ? AND key = ? AND status = 0", who, key
        )
        for (pending,) in rows:
            await self._statements.write(
                "DELETE FROM idempotency WHERE owner = ? AND key = ? AND status = 0 AND headers = ? "
                "AND NOT EXISTS (SELECT 1 FROM runs WHERE run_id = ?)",
                who,
                key,
                pending,
                dict(json.loads(pending or "[]")).get(RUN_HEADER, ""),
            )

    async def delete_request(self, who: str, key: str) -> None:
        """Removes a request that was refused before anything was done, so that it may be sent again."""
        await self._statements.write("DELETE FROM idempotency WHERE owner = ? AND key = ?", who, key)
