"""`HttpEmbedder`: calls an OpenAI-style embeddings endpoint by URL."""

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

import httpx

from agent.llm.embedder.batches import Batches, CallError, Sleep
from agent.llm.embedder.port import MAX_TEXT_CHARS, Embedded
from agent.llm.embedder.reply import read_vectors
from agent.llm.faults import extract_provider_message, parse_retry_after

MAX_REPLY_BYTES = 50_000_000
_TOO_MANY = re.compile(r"batch|too many|inputs?\b.*\b(?:exceed|limit|maximum|less than)", re.IGNORECASE)


def build_pooled_transport() -> httpx.AsyncBaseTransport:
    """Aiohttp's transport behind httpx's API: a fifth of the CPU per call of httpx's own pool."""
    from httpx_aiohttp import AiohttpTransport  # noqa: PLC0415 - 0.2 s of start-up that most need not pay

    return AiohttpTransport(limits=httpx.Limits(max_connections=100, max_keepalive_connections=20))


class HttpEmbedder:
    """Calls `POST {url}/embeddings`: OpenAI, a LiteLLM proxy, Ollama, vLLM, Text Embeddings Inference."""

    def __init__(
        self,
        url: str,
        model: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = 10.0,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._url = url if url.endswith("/embeddings") else f"{url.rstrip('/')}/embeddings"
        self._model = model
        self._timeout_s = timeout_s
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.AsyncClient(transport=transport, headers=headers, trust_env=False, timeout=timeout_s)
        self._batches = Batches(self._url, self._call, sleep=sleep)

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder.embed`. Retries transient failures, then pauses before the next call."""
        return await self._batches.embed(texts)

    async def aclose(self) -> None:
        """See `Embedder.aclose`."""
        await self._client.aclose()

    async def _call(self, texts: Sequence[str]) -> Embedded:
        body = {"input": [text[:MAX_TEXT_CHARS] or " " for text in texts], "model": self._model or "default"}
        try:
            # The client's own limit is one for each read: an endpoint that drips would hold a search for ever.
            async with asyncio.timeout(self._timeout_s):
                response, reply = await self._post(body)
        except (httpx.TimeoutException, TimeoutError) as error:
            raise CallError(f"{self._url} returned no vectors within {self._timeout_s:g} s") from error
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise CallError(f"{self._url} cannot be reached: {reason}", is_transient=True) from error
        if response.status_code >= 400:
            raise self._make_refusal(response, reply)
        try:
            data: Any = json.loads(reply)
        except (ValueError, RecursionError) as error:
            raise CallError(f"{self._url} sent no embeddings") from error
        return read_vectors(data, len(texts), self._url, self._model)

    async def _post(self, body: dict[str, Any]) -> tuple[httpx.Response, bytes]:
        async with self._client.stream("POST", self._url, json=body) as response:
            reply = bytearray()
            async for chunk in response.aiter_bytes():
                reply += chunk
                if len(reply) > MAX_REPLY_BYTES:
                    raise CallError(f"{self._url} sent more than {MAX_REPLY_BYTES:,} bytes")
            return response, bytes(reply)

    def _make_refusal(self, response: httpx.Response, reply: bytes) -> CallError:
        status, reason = response.status_code, extract_provider_message(reply)
        return CallError(
            f"{self._url} answered {status}: {reason}",
            is_transient=status in {408, 425, 429} or status >= 500,
            has_too_many_texts=status == 413 or (status in {400, 422} and _TOO_MANY.search(reason) is not None),
            retry_after_s=parse_retry_after(response.headers),
        )
