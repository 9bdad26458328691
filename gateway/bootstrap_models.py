"""The models' part of the composition root: endpoints, providers and fallbacks from the settings."""

import logging
from typing import TYPE_CHECKING

from agent.core.errors import ConfigError, ModelError
from agent.core.model_endpoints import NAME as ENDPOINT_NAME
from agent.core.model_endpoints import split_models
from agent.core.settings import Settings
from agent.llm.fallback import FallbackClient
from agent.llm.port import ModelClient
from agent.llm.prices import Prices
from agent.llm.retrying import RetryingClient
from agent.llm.sdk import LiteLLMClient
from agent.llm.tiers import ModelTiers
from gateway.bootstrap_context import BuildContext

if TYPE_CHECKING:
    from agent.llm.http import HttpModelClient

log = logging.getLogger(__name__)


async def open_models(context: BuildContext) -> ModelTiers:
    """Returns the configured models, which the end of the gateway closes. Raises `ConfigError`."""
    models = await build_models(context.settings)
    if models.client is not None:
        context.stack.push_async_callback(models.client.aclose)
    return models


async def build_models(settings: Settings) -> ModelTiers:
    """Returns the models: endpoints by URL over HTTP, providers by name through LiteLLM, none in rules mode."""
    if not settings.is_llm_configured:
        return ModelTiers()
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else None
    default: ModelClient
    fast = settings.model_fast
    if settings.llm_base_url is not None:
        from agent.llm.http import HttpModelClient  # noqa: PLC0415 - aiohttp, which rules mode does not need

        endpoint = HttpModelClient(settings.llm_base_url, key)
        fast = fast or await _find_first_model(endpoint)
        default = endpoint
    else:
        default = LiteLLMClient(api_key=key)
    named = _build_endpoint_clients(settings)
    for upstream in (*split_models(fast or ""), *split_models(settings.model_high or "")):
        _, mark, name = upstream.rpartition("@")
        if mark and name not in named and ENDPOINT_NAME.fullmatch(name):  # a version begins with a digit
            log.warning("%s: there is no endpoint %r in AGENT_MODEL_ENDPOINTS", upstream, name)
    return ModelTiers(
        # LiteLLM always answers a check; where it stands beside endpoints, these say whether models can be reached.
        client=RetryingClient(
            FallbackClient(default, named, checks_default=settings.llm_base_url is not None or not named)
        ),
        fast=fast,
        high=settings.model_high,
        timeout_s=settings.llm_timeout_s,
        max_tokens=settings.llm_max_tokens,
        prices=Prices(settings.model_prices),
    )


def _build_endpoint_clients(settings: Settings) -> dict[str, ModelClient]:
    """Returns the clients of the named endpoints."""
    clients: dict[str, ModelClient] = {}
    for name, endpoint in settings.model_endpoints.items():
        from agent.llm.http import HttpModelClient  # noqa: PLC0415 - as above

        key = endpoint.api_key.get_secret_value() if endpoint.api_key else None
        clients[name] = HttpModelClient(endpoint.base_url, key, cache_markers=endpoint.cache_markers)
    return clients


async def _find_first_model(endpoint: "HttpModelClient") -> str:
    """Returns the endpoint's first model. Raises `ConfigError` if its list cannot be read: then AGENT_MODEL_FAST must
    be set.
    """
    try:
        names = await endpoint.list_models()
    except ModelError as error:
        await endpoint.aclose()
        raise ConfigError(
            f"AGENT_MODEL_FAST: name a model; the endpoint's list of models cannot be read: {error.message}"
        ) from error
    if not names:
        await endpoint.aclose()
        raise ConfigError("AGENT_MODEL_FAST: name a model; the endpoint lists none")
    return names[0]
