"""`Batches`: splits texts over embedding calls, with retries."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic

from agent.core.errors import EmbedderError
from agent.llm.embedder.port import Embedded

MAX_BATCH = 128
"""Texts a call; endpoints refuse more than a few hundred, and some more than 32: then it is halved."""
REST_SECONDS = 30.0
"""How long an endpoint that failed is left alone, so that a hanging one does not slow every request."""
RETRIES = 3
"""Calls made again after a limit or a fault that may pass; a time-out is not waited for twice, a search waits here."""
FIRST_BACKOFF_S = 0.25
LONGEST_WAIT_S = 20.0
"""An endpoint that wants more is not waited for: its caller gets the error at once."""

Sleep = Callable[[float], Awaitable[None]]


class CallError(EmbedderError):
    """Raised for a failed call. `is_transient` says that the same call may succeed later, `has_too_many_texts` that one
    with fewer texts may. `retry_after_s` is the wait that the endpoint asks for, in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        is_transient: bool = False,
        has_too_many_texts: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, agent_id="embedder")
        self.is_transient = is_transient
        self.has_too_many_texts = has_too_many_texts
        self.retry_after_s = retry_after_s


class Batches:
    """Splits texts over `call`, keeps their order, and pauses after an endpoint failed."""

    def __init__(
        self, name: str, call: Callable[[Sequence[str]], Awaitable[Embedded]], *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._name = name
        self._call = call
        self._sleep = sleep
        self._size = MAX_BATCH
        self._failed: tuple[float, str] | None = None

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder.embed`. After a failure the endpoint is not called for `REST_SECONDS`."""
        if not texts:
            raise EmbedderError("there are no texts to embed", agent_id="embedder")
        if self._failed is not None and monotonic() - self._failed[0] < REST_SECONDS:
            raise EmbedderError(self._failed[1], agent_id="embedder")
        parts: list[Embedded] = []
        start = 0
        while start < len(texts):
            part = texts[start : start + self._size]
            try:
                parts.append(await self._call_with_retries(part))
            except CallError as error:
                if error.has_too_many_texts and len(part) > 1:
                    self._size = len(part) // 2
                    continue
                self._failed = (monotonic(), error.message)
                raise
            start += len(part)
        self._failed = None
        if len({part.space for part in parts}) > 1:
            raise EmbedderError(f"{self._name} changed its model between two calls", agent_id="embedder")
        return Embedded(parts[0].space, tuple(vector for part in parts for vector in part.vectors))

    async def _call_with_retries(self, texts: Sequence[str]) -> Embedded:
        for attempt in range(RETRIES):
            try:
                return await self._call(texts)
            except CallError as error:
                wait = error.retry_after_s
                if not error.is_transient or (wait or 0.0) > LONGEST_WAIT_S:
                    raise
                if wait is None:
                    wait = FIRST_BACKOFF_S * 2.0**attempt * (0.5 + random.random() / 2)  # noqa: S311 - jitter, no secret
                await self._sleep(wait)
        return await self._call(texts)
