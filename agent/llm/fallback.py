"""`FallbackClient`: asks several upstreams in order until one answers.

An upstream is a model, or `model@endpoint` for one of the named endpoints. The next one is asked after an error that
another upstream can mend: unreachable, rate limit, time-out, 5xx, a refused key, an unknown model, an unreadable reply.
A request that is refused (400) or too long is not repeated elsewhere, and neither is a stream after its first chunk.
"""

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from agent.core.errors import (
    ModelAuthError,
    ModelDownError,
    ModelEndpointError,
    ModelError,
    ModelOutputError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from agent.core.events import FailedUpstream
from agent.llm.circuit_breaker import CircuitBreaker
from agent.llm.port import ModelChunk, ModelClient, ModelReply, ModelRequest

_TRANSIENT = (ModelDownError, ModelRateLimitError, ModelTimeoutError)
_MENDABLE = (*_TRANSIENT, ModelAuthError, ModelEndpointError, ModelOutputError)
SKIPPED = "skipped"
"""Replaces the error code for an upstream that was left out because it had kept failing."""


@dataclass
class _Attempts:
    """The outcomes of the upstreams of one call so far."""

    failed: list[FailedUpstream] = field(default_factory=list)
    errors: list[ModelError] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """HTTP requests of the failed upstreams."""
        return sum(error.requests for error in self.errors)

    def build_error(self) -> ModelError:
        """The error of the call: one that may pass, so that the call is retried, else the first."""
        error = next((one for one in self.errors if isinstance(one, _TRANSIENT)), self.errors[0])
        error.requests, error.failed_upstreams = self.requests, tuple(self.failed)
        return error


class FallbackClient:
    """Implements `ModelClient` over the client of the default endpoint and those of the named ones."""

    def __init__(
        self,
        default: ModelClient,
        named: Mapping[str, ModelClient] | None = None,
        *,
        checks_default: bool = True,
    ) -> None:
        self._default = default
        self._checks_default = checks_default
        self._named = dict(named or {})
        self._breakers: defaultdict[str, CircuitBreaker] = defaultdict(lambda: CircuitBreaker(time.monotonic))

    async def complete(self, request: ModelRequest) -> ModelReply:
        """See `ModelClient.complete`."""
        if not request.fallbacks:
            client, own = self._resolve(request, request.model)
            return await client.complete(own)
        attempts = _Attempts()
        for upstream in self._list_callable(request, attempts):
            client, own = self._resolve(request, upstream)
            with self._attempt(upstream, attempts):
                reply = await client.complete(own)
                if upstream == request.model and not attempts.failed:
                    return reply
                requests = reply.requests + attempts.requests
                return replace(reply, upstream=upstream, failed_upstreams=tuple(attempts.failed), requests=requests)
        raise attempts.build_error()

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """See `ModelClient.stream`. A single upstream's own stream is returned: no frame is added to each chunk."""
        if request.fallbacks:
            return self._stream_first(request)
        client, own = self._resolve(request, request.model)
        return client.stream(own)

    async def _stream_first(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Yields the stream of the first upstream that answers."""
        attempts = _Attempts()
        for upstream in self._list_callable(request, attempts):
            client, own = self._resolve(request, upstream)
            chunks = client.stream(own)
            first: ModelChunk | None = None
            tried = len(attempts.errors)
            with self._attempt(upstream, attempts):
                first = await anext(chunks, None)
            if first is None and len(attempts.errors) > tried:
                continue
            if first is None:
                return
            if attempts.failed:
                failed, requests = tuple(attempts.failed), first.requests + attempts.requests
                first = first._replace(upstream=upstream, failed_upstreams=failed, requests=requests)
            yield first
            try:
                async for chunk in chunks:
                    yield chunk
            except ModelError as error:
                self._breakers[upstream].record_failure(error)
                raise
            return
        raise attempts.build_error()

    async def check(self) -> None:
        """See `ModelClient.check`. One endpoint that answers is enough."""
        first: ModelError | None = None
        for client in (*([self._default] if self._checks_default else ()), *self._named.values()):
            try:
                await client.check()
            except ModelError as error:
                first = first or error
            else:
                return
        if first is not None:
            raise first

    async def aclose(self) -> None:
        """See `ModelClient.aclose`."""
        for client in (self._default, *self._named.values()):
            await client.aclose()

    def _list_callable(self, request: ModelRequest, attempts: _Attempts) -> Sequence[str]:
        """The upstreams to ask, in order. Those that keep failing are left out, unless all do."""
        upstreams = (request.model, *request.fallbacks)
        allowed = [upstream for upstream in upstreams if self._breakers[upstream].allows_call()]
        if not allowed:
            return upstreams
        attempts.failed += [
            FailedUpstream(model=upstream, error_code=SKIPPED) for upstream in upstreams if upstream not in allowed
        ]
        return allowed

    def _resolve(self, request: ModelRequest, upstream: str) -> tuple[ModelClient, ModelRequest]:
        """The client of an upstream, and the request as that client takes it.

        A name with an `@` that names no endpoint is a model of the default endpoint: some providers write versions so.
        """
        model, mark, endpoint = upstream.rpartition("@")
        client = self._named.get(endpoint) if mark else None
        if client is None and upstream == request.model and not request.fallbacks:
            return self._default, request
        if client is None:
            return self._default, replace(request, model=upstream, fallbacks=())
        return client, replace(request, model=model, fallbacks=())

    @contextmanager
    def _attempt(self, upstream: str, attempts: _Attempts) -> Iterator[None]:
        """Records how a call of an upstream ends. Swallows an error after which another one is asked."""
        breaker = self._breakers[upstream]
        breaker.begin_call()
        try:
            yield
        except ModelError as error:
            if not isinstance(error, _MENDABLE):
                breaker.record_success()  # it has answered
                error.requests += attempts.requests
                error.failed_upstreams = tuple(attempts.failed)
                raise
            breaker.record_failure(error)
            attempts.failed.append(FailedUpstream(model=upstream, error_code=error.code))
            attempts.errors.append(error)
        except BaseException:
            breaker.record_cancelled()
            raise
        else:
            breaker.record_success()
