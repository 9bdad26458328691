"""The models' part of the composition root: endpoints, providers and fallbacks from the settings or the saved list."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.errors import ConfigError, ModelError
from agent.core.model_endpoints import NAME as ENDPOINT_NAME
from agent.core.models import JsonObject
from agent.core.settings import Settings
from agent.llm.endpoint_origin import FROM_NAMED_SETTINGS, FROM_SETTINGS, EndpointOrigin
from agent.llm.fallback import FallbackClient
from agent.llm.model_address import split_login
from agent.llm.port import ModelClient
from agent.llm.retrying import RetryingClient
from agent.llm.saved_models import BOTH_ROLES, Role, SavedModel
from agent.llm.sdk import LiteLLMClient
from agent.llm.tiers import ConfiguredModel, ModelTiers, Prices, split_models

if TYPE_CHECKING:
    from agent.llm.http import HttpModelClient
    from gateway.local_engine import LocalModelClient

log = logging.getLogger(__name__)
NOTHING_LOADED: "Mapping[str, LocalModelClient]" = {}


async def build_models(settings: Settings) -> ModelTiers:
    """The models: endpoints by URL over HTTP, providers by name through LiteLLM, none in rules mode."""
    if not settings.is_llm_configured:
        return ModelTiers()
    if settings.model_file is not None:
        return _build_file_model(settings, settings.model_file)
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else None
    default: ModelClient
    fast = settings.model_fast
    if settings.llm_base_url is not None:
        from agent.llm.http import HttpModelClient  # noqa: PLC0415 - aiohttp, which rules mode does not need

        endpoint = HttpModelClient(settings.llm_base_url, key, origin=FROM_SETTINGS, extra_body=settings.llm_extra_body)
        fast = fast or await _find_first_model(endpoint)
        default = endpoint
    else:
        names = [*split_models(fast or ""), *split_models(settings.model_high or "")]
        own = [name for name in names if name.rpartition("@")[2] not in settings.model_endpoints]
        default = LiteLLMClient(api_key=key, models=own, extra_body=settings.llm_extra_body)
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
        configured=_list_configured(settings, fast),
    )


def _build_file_model(settings: Settings, file: Path) -> ModelTiers:
    """The model of AGENT_MODEL_FILE. Raises `ConfigError` where something else is configured too."""
    for name in ("llm_base_url", "model_fast", "model_high"):
        if getattr(settings, name) is not None:
            raise ConfigError(f"AGENT_MODEL_FILE: cannot be combined with AGENT_{name.upper()}; unset one of them")
    if settings.serve_workers > 1:
        raise ConfigError(
            "AGENT_MODEL_FILE: each of AGENT_SERVE_WORKERS processes would load the model; serve the file by one "
            "program and set AGENT_LLM_BASE_URL"
        )
    client = build_file_client(settings, file, extra_body=settings.llm_extra_body)
    name = client.engine.options.name
    return ModelTiers(
        client=RetryingClient(FallbackClient(client)),
        fast=name,
        timeout_s=settings.llm_timeout_s,
        max_tokens=settings.llm_max_tokens,
        prices=Prices(settings.model_prices),
        configured=(ConfiguredModel("default", name, None, BOTH_ROLES, "environment", file=str(file)),),
        engines={str(file): client},
    )


def build_file_client(
    settings: Settings, file: Path, name: str = "", *, extra_body: JsonObject | None = None
) -> "LocalModelClient":
    """The client of a model file, which is loaded at the first call. `extra_body` as in `HttpModelClient`."""
    from gateway.local_engine import EngineOptions, LocalEngine, LocalModelClient  # noqa: PLC0415 - aiohttp, as above

    options = EngineOptions(file=file, name=name or file.stem, context=settings.model_context)
    return LocalModelClient(LocalEngine(options), extra_body)


def build_saved_models(
    settings: Settings,
    entries: Sequence[SavedModel],
    keys: Mapping[str, str],
    loaded: "Mapping[str, LocalModelClient]" = NOTHING_LOADED,
) -> ModelTiers:
    """The models of the saved list. `keys` are the endpoints' keys by the names of the entries, `loaded` the
    clients of model files, by path, that can be used again.
    """
    if not entries:
        return ModelTiers()
    from agent.llm.http import HttpModelClient  # noqa: PLC0415 - as in `build_models`

    clients: dict[str, ModelClient] = {}
    engines: dict[str, LocalModelClient] = {}
    for entry in entries:
        if entry.file is not None:
            client = loaded.get(entry.file) or build_file_client(
                settings, Path(entry.file), entry.model, extra_body=entry.extra_body
            )
            clients[entry.name] = engines[entry.file] = client
        else:
            origin = EndpointOrigin.make_saved(entry.name)
            clients[entry.name] = HttpModelClient(
                entry.base_url or "", keys.get(entry.name), origin=origin, extra_body=entry.extra_body
            )

    def join(role: Role) -> str | None:
        return ",".join(f"{entry.model}@{entry.name}" for entry in entries if role in entry.roles) or None

    fast, high = join("fast"), join("high")
    return ModelTiers(
        client=RetryingClient(FallbackClient(clients[entries[0].name], clients)),
        fast=fast or high,
        high=high,
        timeout_s=settings.llm_timeout_s,
        max_tokens=settings.llm_max_tokens,
        prices=Prices(settings.model_prices),
        configured=tuple(describe_saved_model(entry, has_key=entry.name in keys) for entry in entries),
        endpoint_clients=tuple(client for client in clients.values() if client not in engines.values()),
        keys=tuple(keys.values()),
        engines=engines,
    )


def describe_saved_model(entry: SavedModel, *, has_key: bool) -> ConfiguredModel:
    """An entry of the saved list as it is shown."""
    address = split_login(entry.base_url or "")
    return ConfiguredModel(
        name=entry.name,
        model=entry.model,
        base_url=address.base_url or None,
        roles=entry.roles,
        source="file",
        has_key=has_key or address.login is not None,
        product=entry.product,
        vision=entry.vision,
        file=entry.file,
        extra_body=entry.extra_body,
    )


def _list_configured(settings: Settings, fast: str | None) -> tuple[ConfiguredModel, ...]:
    """The models of the settings: one entry for each place in the lists of the roles."""
    roles: dict[str, list[Role]] = {}
    for upstream in split_models(fast or ""):
        roles.setdefault(upstream, []).append("fast")
    for upstream in split_models(settings.model_high or fast or ""):
        roles.setdefault(upstream, []).append("high")
    return tuple(_describe_upstream(settings, upstream, tuple(kinds)) for upstream, kinds in roles.items())


def _describe_upstream(settings: Settings, upstream: str, roles: tuple[Role, ...]) -> ConfiguredModel:
    model, mark, name = upstream.rpartition("@")
    endpoint = settings.model_endpoints.get(name) if mark else None
    if endpoint is None:
        name, model, written, key = "default", upstream, settings.llm_base_url, settings.llm_api_key
    else:
        written, key = endpoint.base_url, endpoint.api_key
    address = split_login(written or "")
    return ConfiguredModel(
        name,
        model,
        address.base_url or None,
        roles,
        "environment",
        has_key=key is not None or address.login is not None,
        extra_body=settings.llm_extra_body if endpoint is None else endpoint.extra_body,
    )


def _build_endpoint_clients(settings: Settings) -> dict[str, ModelClient]:
    """The clients of the named endpoints."""
    clients: dict[str, ModelClient] = {}
    for name, endpoint in settings.model_endpoints.items():
        from agent.llm.http import HttpModelClient  # noqa: PLC0415 - as above

        key = endpoint.api_key.get_secret_value() if endpoint.api_key else None
        clients[name] = HttpModelClient(
            endpoint.base_url,
            key,
            cache_markers=endpoint.cache_markers,
            origin=FROM_NAMED_SETTINGS,
            extra_body=endpoint.extra_body,
        )
    return clients


async def _find_first_model(endpoint: "HttpModelClient") -> str:
    """The endpoint's first model. Raises `ConfigError` if its list cannot be read: then AGENT_MODEL_FAST must
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
