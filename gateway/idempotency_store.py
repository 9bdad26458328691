"""The requests that came with an `Idempotency-Key`, and the answers they had."""

import base64
import json
import time
from collections.abc import Callable

from agent.core.errors import AgentError, ConflictError
from agent.core.statements import Statements

KEPT_SECONDS = 86_400.0
UNDER_WAY_SECONDS = 960.0
"""A run lasts 15 minutes at most; what has no answer by then died with its process, and may be tried again."""


class ReusedKeyError(AgentError):
    """Raised for a key that came with another body before."""

    code = "ERR_IDEMPOTENCY"


class IdempotencyStore:
    """The keys with their answers. Methods raise `StoreError`."""

    def __init__(self, statements: Statements, clock: Callable[[], float] = time.time) -> None:
        self._statements = statements
        self._clock = clock

    async def begin(self, who: str, key: str, digest: str) -> tuple[int, list[list[str]], bytes] | None:
        """Note a request: None when it is to be carried out, else the answer it had.

        Raises `ReusedKeyError` for another body, `ConflictError` while the first is under way."""
        now = self._clock()
        await self._statements.write(
            "DELETE FROM idempotency WHERE at < ? OR (status = 0 AND at < ?)",
            now - KEPT_SECONDS,
            now - UNDER_WAY_SECONDS,
        )
        made = await self._statements.write(
            "INSERT INTO idempotency (owner, key, digest, status, headers, body, at) VALUES (?,?,?,0,'','',?) "
            "ON CONFLICT (owner, key) DO NOTHING RETURNING key",
            who,
            key,
            digest,
            now,
        )
        if made:
            return None
        rows = await self._statements.read(
            "SELECT digest, status, headers, body FROM idempotency WHERE owner = ? AND key = ?", who, key
        )
        if not rows:  # its time was over in this very moment
            return await self.begin(who, key, digest)
        known, status, headers, body = rows[0]
        if known != digest:
            raise ReusedKeyError("Idempotency-Key: this key came with another request before; take a new one")
        if status == 0:
            raise ConflictError("Idempotency-Key: the first request with this key is still under way")
        if status < 0:
            run = dict(json.loads(headers)).get("x-stepgate-run-id")
            where = f": GET /v1/runs/{run}/events" if run else ""
            raise ConflictError(f"Idempotency-Key: the answer to this key was streamed, and is not kept{where}")
        return int(status), json.loads(headers), base64.b64decode(body)

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
