"""`RetryingClient`: retries of single model calls, separate from the budgets of steps and plans.

A rate limit or an unavailable endpoint is tried three times in all, with back-off and the endpoint's `Retry-After`. A
time-out is tried twice, the second time with twice the limit, unless the request says otherwise. Nothing else is
retried. A stream is retried only before its first chunk.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from agent.core.errors import ModelDownError, ModelError, ModelRateLimitError, ModelTimeoutError
from agent.llm.port import ModelChunk, ModelClient, ModelReply, ModelRequest

LONGEST_WAIT_S = 60.0
"""An endpoint that wants more is not waited for: its caller gets the error at once."""
FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 8.0

RETRIES: Mapping[type[ModelError], int] = {ModelRateLimitError: 2, ModelDownError: 2, ModelTimeoutError: 1}

Sleep = Callable[[float], Awaitable[None]]


class RetryingClient:
    """Implements `ModelClient` around another client."""

    def __init__(self, inner: ModelClient, *, sleep: Sleep = asyncio.sleep) -> None:
        self._inner = inner
        self._sleep = sleep

    async def complete(self, request: ModelRequest) -> ModelReply:
        """See `ModelClient.complete`. `requests` counts the attempts."""
        budget = _Budget(self._sleep)
        while True:
            try:
                reply = await self._inner.complete(request)
            except ModelError as error:
                request = await budget.spend(error, request)
            else:
                return reply if budget.requests == 1 else replace(reply, requests=budget.requests + reply.requests - 1)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """See `ModelClient.stream`."""
        budget = _Budget(self._sleep)
        while True:
            chunks = self._inner.stream(request)
            try:
                first = await anext(chunks, None)
            except ModelError as error:
                request = await budget.spend(error, request)
            else:
                break
        if first is not None:
            yield first if budget.requests == 1 else first._replace(requests=budget.requests + first.requests - 1)
            async for chunk in chunks:
                yield chunk

    async def check(self) -> None:
        """See `ModelClient.check`. Not retried."""
        await self._inner.check()

    async def aclose(self) -> None:
        """See `ModelClient.aclose`."""
        await self._inner.aclose()


@dataclass
class _Budget:
    """The retries left for one call."""

    sleep: Sleep
    requests: int = 1

    async def spend(self, error: ModelError, request: ModelRequest) -> ModelRequest:
        """Waits as the error asks and returns the next request. Raises the error when no retry is left."""
        allowed = next((count for kind, count in RETRIES.items() if isinstance(error, kind)), 0)
        if isinstance(error, ModelTimeoutError) and not request.retry_timeouts:
            allowed = 0
        if self.requests > allowed or (error.retry_after_s or 0) > LONGEST_WAIT_S:
            error.requests += self.requests - 1
            raise error
        await self.sleep(self._wait(error))
        self.requests += 1
        if isinstance(error, ModelTimeoutError):
            return replace(request, timeout_s=2 * request.timeout_s)
        return request

    def _wait(self, error: ModelError) -> float:
        if error.retry_after_s is not None:
            return error.retry_after_s
        if isinstance(error, ModelTimeoutError):
            return 0.0
        longest: float = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** (self.requests - 1))
        return longest * (0.5 + random.random() / 2)  # noqa: S311 - jitter, no secret
