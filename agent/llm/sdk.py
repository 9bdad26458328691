"""`LiteLLMClient`: calls any provider that LiteLLM supports, by LiteLLM's model name, through its SDK.

The SDK is imported at first use, in a thread. The import costs about 4 s and 180 MB, which a gateway that calls an
endpoint by URL, or no model, must not pay.
"""

import asyncio
import importlib
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from agent.core.errors import (
    ModelAuthError,
    ModelContextError,
    ModelDownError,
    ModelEndpointError,
    ModelError,
    ModelOutputError,
    ModelRateLimitError,
    ModelRequestError,
    ModelTimeoutError,
)
from agent.core.models import JsonObject
from agent.llm.chunks import ChunkReader, has_thoughts
from agent.llm.endpoint_origin import hide_key
from agent.llm.faults import CONTEXT_ADVICE, is_context_message, parse_retry_after
from agent.llm.parameters import LEARNABLE, ParameterSupport
from agent.llm.port import ModelChunk, ModelReply, ModelRequest
from agent.llm.replies import read_completion

_ERRORS: tuple[tuple[str, type[ModelError]], ...] = (
    # The first that fits counts: LiteLLM's own classes derive from one another.
    ("ContextWindowExceededError", ModelContextError),
    ("AuthenticationError", ModelAuthError),
    ("PermissionDeniedError", ModelAuthError),
    ("RateLimitError", ModelRateLimitError),
    ("Timeout", ModelTimeoutError),
    ("APIConnectionError", ModelDownError),
    ("ServiceUnavailableError", ModelDownError),
    ("InternalServerError", ModelDownError),
    ("BadGatewayError", ModelDownError),
    ("APIResponseValidationError", ModelOutputError),
    ("JSONSchemaValidationError", ModelOutputError),
    ("BadRequestError", ModelRequestError),
    ("NotFoundError", ModelEndpointError),
    ("UnprocessableEntityError", ModelRequestError),
    ("APIError", ModelDownError),
)


class LiteLLMClient:
    """Implements `ModelClient`. Keys come from the providers' own environment variables unless one is given."""

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        models: Sequence[str] = (),
        extra_body: JsonObject | None = None,
    ) -> None:
        """`base_url` replaces the provider's address (LiteLLM calls it `api_base`). `models` are those whose keys
        `check` looks for; `extra_body` as in `HttpModelClient`.
        """
        self._models = tuple(models)
        self._extra = {"extra_body": extra_body} if extra_body else {}
        self._options: dict[str, str] = {}
        if api_key:
            self._options["api_key"] = api_key
        if base_url:
            self._options["api_base"] = base_url
        self._support = ParameterSupport()
        self._module: ModuleType | None = None

    async def complete(self, request: ModelRequest) -> ModelReply:
        """See `ModelClient.complete`."""
        litellm = await self._load_litellm()
        response, sent = await self._ask(litellm, request, stream=False)
        reply = _build_reply(response, request, _estimate_cost(litellm, response))
        self._support.confirm(request, sent, thinks=has_thoughts(reply.reasoning, reply.text))
        return self._support.restore_reply(request, reply)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """See `ModelClient.stream`."""
        return self._support.restore_chunks(request, self._stream(request))

    async def _stream(self, request: ModelRequest) -> AsyncGenerator[ModelChunk, None]:
        litellm = await self._load_litellm()
        reader = ChunkReader(request.model, self._support.get_reply_limit(request))
        response, sent = await self._ask(litellm, request, stream=True)
        try:
            async for event in response:
                for chunk in reader.read([event.model_dump()]):
                    yield chunk
                if reader.is_cut:
                    return
        except Exception as error:
            raise self._translate_error(litellm, error, request.model) from error
        # The SDK ends every stream with a "stop" of its own; only this tells whether the provider said so.
        if getattr(response, "received_finish_reason", "stop") is None:
            raise ModelOutputError(f"{request.model} ended its stream in mid-reply", agent_id="models")
        for chunk in reader.end(is_whole=False):
            yield chunk
        self._support.confirm(request, sent, thinks=reader.has_thoughts)

    async def check(self) -> None:
        """See `ModelClient.check`. Checks the SDK, that each model's name leads to a provider, and that its key is set:
        providers offer no request that costs nothing.
        """
        litellm = await self._load_litellm()
        for model in self._models:
            error = self._find_name_error(litellm, model) or self._find_key_error(litellm, model)
            if error is not None:
                raise error

    async def aclose(self) -> None:
        """See `ModelClient.aclose`."""
        if self._module is not None:
            await self._module.close_litellm_async_clients()

    async def _load_litellm(self) -> ModuleType:
        if self._module is None:
            self._module = await import_litellm()
        return self._module

    async def _ask(self, litellm: ModuleType, request: ModelRequest, *, stream: bool) -> tuple[Any, JsonObject]:
        """The SDK's response, and the body that was sent. Repeats the call at once without what its model refuses."""
        bodies: list[JsonObject] = []
        while True:
            bodies.append(self._support.build_body(request, stream=stream))
            try:
                return await self._ask_once(litellm, request, bodies[-1]), bodies[-1]
            except LEARNABLE as error:
                if not self._support.learn(request, bodies, error):
                    raise

    async def _ask_once(self, litellm: ModuleType, request: ModelRequest, body: JsonObject) -> Any:
        options: dict[str, Any] = {
            **self._options,
            "timeout": request.timeout_s,
            "num_retries": 0,
            "max_retries": 0,
            "extra_headers": {"X-Stepgate-Purpose": request.purpose},
            **self._extra,
            **body,
        }
        try:
            return await litellm.acompletion(**options)
        except Exception as error:
            raise self._translate_error(litellm, error, request.model) from error

    def _find_key_error(self, litellm: ModuleType, model: str) -> ModelAuthError | None:
        """The error for a model whose provider needs a key that is not set."""
        if "api_key" in self._options:
            return None
        missing = find_missing_keys(litellm, model)
        if not missing:
            return None
        return ModelAuthError(
            f"{model} has no key: set {' or '.join((*missing, 'AGENT_LLM_API_KEY'))}", agent_id="models"
        )

    def _find_name_error(self, litellm: ModuleType, model: str) -> ModelEndpointError | None:
        """The error for a model whose name does not say which provider has it, such as that of a local program."""
        if "api_base" in self._options or has_provider(litellm, model):
            return None
        return ModelEndpointError(
            f"the name {model} does not say which provider has this model: set AGENT_LLM_BASE_URL to the address of its"
            f" endpoint, or begin the name with its provider, as in ollama/{model}",
            agent_id="models",
        )

    def _translate_error(self, litellm: ModuleType, error: Exception, model: str) -> ModelError:
        translated = translate_error(litellm, error)
        if isinstance(translated, ModelRequestError):
            translated = self._find_name_error(litellm, model) or translated
        names_key = re.search(r"api[ _-]?key|credential", str(error), re.IGNORECASE)
        if isinstance(translated, ModelDownError) and names_key and "api_base" not in self._options:
            # Without a key some providers' clients fail before they connect, which the SDK calls an error of the
            # server: it would be tried again, and nobody would be told which key to set. An outage of a provider
            # whose key stands in a variable that `validate_environment` does not know is one all the same.
            translated = self._find_key_error(litellm, model) or translated
        hide_key(translated, self._options.get("api_key"))
        return translated


def has_provider(litellm: ModuleType, model: str) -> bool:
    """Whether LiteLLM knows from a model's name which provider to call."""
    try:
        litellm.get_llm_provider(model)
    except Exception:  # noqa: BLE001 - the SDK raises anything for a name that it cannot place
        return False
    return True


def find_missing_keys(litellm: ModuleType, model: str) -> list[str]:
    """The environment variables from which LiteLLM would read this model's key, if none of them is set.

    Empty for a provider that LiteLLM does not know or that has other ways to log in (cloud roles, Entra tokens).
    """
    try:
        environment = litellm.validate_environment(model)
        if litellm.get_llm_provider(model)[2]:  # the key, also of variables that the check above does not know
            return []
    except Exception:  # noqa: BLE001 - the SDK raises anything for a name that it cannot place
        return []
    missing = [str(name) for name in environment.get("missing_keys") or []]
    return [name for name in missing if name.endswith("_API_KEY") and name != "AZURE_API_KEY"]


async def import_litellm() -> ModuleType:
    """LiteLLM, imported in a thread where it was not yet, and silent."""
    # Without this the import fetches a price list from the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    module = await asyncio.to_thread(importlib.import_module, "litellm")
    for switch, value in (("telemetry", False), ("suppress_debug_info", True), ("drop_params", True)):
        setattr(module, switch, value)
    return module


def translate_error(litellm: ModuleType, error: Exception) -> ModelError:
    """LiteLLM's error as ours. The SDK lets errors of many libraries through: what it does not name is `Down`."""
    if isinstance(error, ModelError):
        return error
    inner = getattr(error, "original_exception", None)
    if type(error).__name__ == "MidStreamFallbackError" and isinstance(inner, Exception):
        # Some chunks have come: whatever broke it, it is half a stream.
        return ModelOutputError(f"the stream broke off: {' '.join(str(inner).split())[:300]}", agent_id="models")
    message = " ".join(str(error).split())[:300]
    status = getattr(error, "status_code", None)
    for name, kind in _ERRORS:
        error_class = getattr(litellm, name, None) or getattr(litellm.exceptions, name, None)
        if error_class is not None and isinstance(error, error_class):
            if kind in (ModelRequestError, ModelDownError) and is_context_message(message):
                return ModelContextError(f"{message}; {CONTEXT_ADVICE}", agent_id="models", status=status)
            param, code = getattr(error, "param", None), getattr(error, "code", None)
            named = {"param": param, "code": code} if issubclass(kind, ModelRequestError) else {}
            ours = kind(message, agent_id="models", status=status, **named)
            headers: Mapping[str, str] = getattr(error, "litellm_response_headers", None) or {}
            ours.retry_after_s = parse_retry_after(headers)
            return ours
    return ModelDownError(f"LiteLLM failed with {type(error).__name__}: {message}", agent_id="models")


def _build_reply(response: Any, request: ModelRequest, cost: float | None) -> ModelReply:
    reply = read_completion(response.model_dump(), request.model)
    usage = reply.usage if cost is None else reply.usage.model_copy(update={"cost_usd": cost})
    return replace(reply, model=reply.model or request.model, usage=usage)


def _estimate_cost(litellm: ModuleType, response: Any) -> float | None:
    """The cost of the call by LiteLLM's price list; None without a price."""
    try:
        cost = float(litellm.completion_cost(completion_response=response))
    except Exception:  # noqa: BLE001 - the SDK raises bare Exception for an unknown price
        return None
    return cost or None
