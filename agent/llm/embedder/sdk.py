"""`LiteLLMEmbedder`: embeddings from any provider LiteLLM supports, by LiteLLM's model name, through its SDK."""

import asyncio
from collections.abc import Sequence
from typing import Any

from agent.core.errors import ModelDownError, ModelRateLimitError
from agent.llm.embedder.batches import Batches, CallError, Sleep
from agent.llm.embedder.port import MAX_TEXT_CHARS, Embedded
from agent.llm.embedder.reply import read_vectors
from agent.llm.sdk import import_litellm, translate_error


class LiteLLMEmbedder:
    """Implements `Embedder`. Keys come from the providers' own environment variables unless one is given."""

    def __init__(
        self,
        model: str,
        api_key: str | None = None,
        *,
        timeout_s: float = 10.0,
        base_url: str | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._model = model
        self._timeout_s = timeout_s
        given = {"api_key": api_key, "api_base": base_url}
        self._options = {name: value for name, value in given.items() if value}
        self._batches = Batches(model, self._call, sleep=sleep)

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder.embed`. Retries transient failures, then pauses before the next call."""
        return await self._batches.embed(texts)

    async def aclose(self) -> None:
        """Does nothing: the SDK's connections are closed by `LiteLLMClient`."""

    async def _call(self, texts: Sequence[str]) -> Embedded:
        litellm = await import_litellm()
        sent = [text[:MAX_TEXT_CHARS] or " " for text in texts]
        try:
            async with asyncio.timeout(self._timeout_s):
                response: Any = await litellm.aembedding(
                    model=self._model,
                    input=sent,
                    timeout=self._timeout_s,
                    num_retries=0,
                    max_retries=0,
                    **self._options,
                )
        except TimeoutError as error:
            message = f"the embeddings model {self._model} returned no vectors within {self._timeout_s:g} s"
            raise CallError(message) from error
        except Exception as error:  # the SDK lets errors of many libraries through
            translated = translate_error(litellm, error)
            raise CallError(
                f"the embeddings model {self._model} failed: {translated.message}",
                is_transient=isinstance(translated, ModelDownError | ModelRateLimitError),
                retry_after_s=translated.retry_after_s,
            ) from error
        return read_vectors(response.model_dump(), len(texts), self._model, self._model)
