"""Choosing a model, as the command line and `/v1/admin/models` do it: what this machine offers, whether a configured
one answers, and one real call before one is saved.
"""

import asyncio
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import ValidationError

from agent.core.errors import (
    AgentError,
    BadRequestError,
    ModelAuthError,
    ModelError,
    ModelUnreachableError,
    RequestError,
)
from agent.core.settings import Settings
from agent.core.value_faults import describe_first_fault
from agent.llm.discovery import FoundEndpoint, discover_endpoints, find_obstacle
from agent.llm.gguf_parts import remove_part_number
from agent.llm.listed_models import is_stepgate, read_listed_models
from agent.llm.model_address import list_roots, split_login
from agent.llm.port import ModelClient
from agent.llm.saved_models import Role, SavedModel
from agent.llm.sdk import LiteLLMClient
from agent.llm.tiers import ConfiguredModel
from agent.llm.trial import ModelTrial, can_see, try_model
from agent.policy.redaction.secrets import make_secret_finder
from gateway.access.authentication import can_others_call
from gateway.bootstrap_models import build_file_client
from gateway.live_models import LiveModels, check_name_is_free

CHECK_SECONDS = 2.0
"""Time limit of a check whether a configured endpoint answers, while a person waits for the list."""
TRIAL_SECONDS = 120.0
"""Time limit of the first call: some programs load a model only then."""
LOAD_SECONDS = 600.0
"""The same for a file that must be loaded first: a large one takes minutes from a slow disk."""
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")

ModelState = Literal["reachable", "unreachable", "unused"]


class ModelTrialError(RequestError):
    """Raised if a model cannot be saved because it cannot be called."""

    code = "ERR_VALIDATION"

    def __init__(self, message: str) -> None:
        super().__init__(message, agent_id="models")


@dataclass(frozen=True, slots=True)
class Discovered:
    """The models of this machine, or why nothing was searched for."""

    found: tuple[FoundEndpoint, ...] = ()
    obstacle: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """A configured model, and whether its endpoint answers."""

    model: ConfiguredModel
    state: ModelState
    reason: str = ""


async def find_endpoints(settings: Settings, configured: Iterable[ConfiguredModel] = ()) -> Discovered:
    """The endpoints on this machine without the models in `configured`, or why nothing was searched for."""
    obstacle = find_obstacle(settings.discover, is_loopback=not can_others_call(settings), environment=os.environ)
    if obstacle is not None:
        return Discovered(obstacle=obstacle)
    used = {(_to_loopback(one.base_url), one.model) for one in configured if one.base_url}
    endpoints = [
        endpoint.model_copy(
            update={"models": tuple(one for one in endpoint.models if (endpoint.base_url, one.name) not in used)}
        )
        for endpoint in await discover_endpoints(skipped_ports=[settings.port])
    ]
    return Discovered(tuple(one for one in endpoints if one.models))


def _to_loopback(base_url: str) -> str:
    """An address in the form in which found endpoints have it."""
    return base_url.rstrip("/").replace("//localhost:", "//127.0.0.1:")


def format_offer(endpoint: FoundEndpoint) -> str:
    """The line that offers the first model of a found endpoint."""
    model = endpoint.models[0]
    more = f" (and {len(endpoint.models) - 1} more)" if len(endpoint.models) > 1 else ""
    command = f"stepgate models use {shlex.quote(model.name)}"
    return f"Use {model.short_name}{more} from {endpoint.product} on this machine: {command}"


async def check_configured(live: LiveModels) -> list[CheckedModel]:
    """Every configured model with its state, those that the environment overrides last."""
    used = await asyncio.gather(*(_check(live, one) for one in live.tiers.configured))
    reason = "the environment names other models (AGENT_LLM_BASE_URL, AGENT_MODEL_FAST), which win over the saved ones"
    return [*used, *(CheckedModel(one, "unused", reason) for one in live.unused)]


async def _check(live: LiveModels, model: ConfiguredModel) -> CheckedModel:
    engine = live.tiers.engines.get(model.file or "")
    try:
        if engine is not None:
            await engine.check()
            return CheckedModel(model, "reachable", engine.describe())
        key = find_key(live, model)
        if model.base_url is None:
            await LiteLLMClient(key, models=[model.model]).check()
        else:
            await list_models(model.base_url, key, seconds=CHECK_SECONDS)
    except AgentError as error:
        return CheckedModel(model, "unreachable", error.message)
    return CheckedModel(model, "reachable")


def find_key(live: LiveModels, model: ConfiguredModel) -> str | None:
    """The key of a configured model, or the login in its address. Raises `CredentialError` if it cannot be read."""
    settings = live.settings
    if model.source == "file":
        saved = next((one for one in live.saved.read() if one.name == model.name), None)
        return None if saved is None else live.find_key(saved) or split_login(saved.base_url or "").login
    endpoint = settings.model_endpoints.get(model.name)
    secret = endpoint.api_key if endpoint is not None else settings.llm_api_key
    written = endpoint.base_url if endpoint is not None else settings.llm_base_url
    return secret.get_secret_value() if secret is not None else split_login(written or "").login


async def list_models(base_url: str, key: str | None, *, seconds: float) -> list[str]:
    """The models of an endpoint. Raises `ModelError`."""
    from agent.llm.http import HttpModelClient  # noqa: PLC0415 - aiohttp, which rules mode does not need

    client = HttpModelClient(base_url, key)
    try:
        async with asyncio.timeout(seconds):
            return await client.list_models()
    except TimeoutError as error:
        raise ModelError(f"{base_url} did not list its models within {seconds:g} s", agent_id="models") from error
    finally:
        await client.aclose()


async def test_endpoint(base_url: str, key: str | None, model: str | None, *, looks: bool) -> ModelTrial:
    """Makes one real call of a model; of the endpoint's first one that chats if none is named. The trial says what went
    wrong, at which base URL the API is, and, where `looks` is set, whether the model sees pictures.
    """
    trial = ModelTrial(ok=False)
    for place, root in enumerate(list_roots(base_url)):
        listing, fault = await _read_listing(root, key)
        if isinstance(fault, ModelUnreachableError):
            trial = ModelTrial(ok=False, reason=fault.message, model=model or "")
            break
        tried = await _try_at(root, key, model, listing, fault, looks=looks)
        is_there = listing is not None or tried.ok or isinstance(fault, ModelAuthError)
        if is_there or place == 0:  # where nothing is found, what the first place said
            trial = tried
        if is_there:
            break
    if key is None or trial.ok:
        return trial
    # Providers repeat the key that they refuse.
    return trial.model_copy(update={"reason": make_secret_finder((key,), "forms").redact(trial.reason)})


async def _read_listing(root: str, key: str | None) -> tuple[dict[str, Any] | None, ModelError | None]:
    """An endpoint's list of models, or why there is none."""
    from agent.llm.http import HttpModelClient  # noqa: PLC0415 - as above

    client = HttpModelClient(root, key)
    try:
        return await client.read_listing(), None
    except ModelError as error:
        return None, error
    finally:
        await client.aclose()


async def _try_at(
    root: str,
    key: str | None,
    model: str | None,
    listing: dict[str, Any] | None,
    fault: ModelError | None,
    *,
    looks: bool,
) -> ModelTrial:
    from agent.llm.http import HttpModelClient  # noqa: PLC0415 - as above

    chosen = model
    if listing is not None:
        if is_stepgate(listing):
            reason = f"{root} is a Stepgate gateway: its models are rooms, and it would call itself forever"
            return ModelTrial(ok=False, reason=reason, model=model or "")
        names = [one.name for one in read_listed_models(listing, {})]
        chosen = model or next(iter(names), None)
    if chosen is None:
        return ModelTrial(ok=False, reason=fault.message if fault else f"{root} lists no chat model; name one")
    client = HttpModelClient(root, key)
    try:
        trial = await _try(client, chosen, TRIAL_SECONDS, looks=looks)
    finally:
        await client.aclose()
    return trial.model_copy(update={"base_url": root})


async def _try(client: ModelClient, model: str, seconds: float, *, looks: bool) -> ModelTrial:
    trial = await try_model(client, model, timeout_s=seconds)
    sees = looks and trial.ok and await can_see(client, model)
    return trial.model_copy(update={"vision": sees})


async def test_file(settings: Settings, file: Path, *, looks: bool) -> ModelTrial:
    """Loads a model file, makes one real call, and unloads it. The trial says what went wrong, and, where `looks` is
    set, whether the model sees pictures.
    """
    client = build_file_client(settings, file)
    try:
        return await _try(client, client.engine.options.name, LOAD_SECONDS, looks=looks)
    finally:
        await client.aclose()


async def choose_model(live: LiveModels, entry: SavedModel, key: str | None) -> ModelTrial:
    """Tries a model, then saves it at the head of the list; it is in use when this returns.

    Raises `ModelTrialError` if the model cannot be called: nothing is saved then. Raises `ConfigError` for a name that
    is taken, and if it cannot be saved.
    """
    check_name_is_free(live, entry)
    if entry.file is not None:
        trial = await test_file(live.settings, Path(entry.file), looks=True)
    else:
        trial = await test_endpoint(entry.base_url or "", key, entry.model, looks=True)
        entry = entry.model_copy(update={"base_url": trial.base_url or entry.base_url})
    if not trial.ok:
        place = entry.file or f"{entry.model} at {entry.base_url}"
        raise ModelTrialError(f"{place} cannot be used, so nothing was saved: {trial.reason}")
    await live.save(entry.model_copy(update={"vision": trial.vision}), key)
    return trial


def make_endpoint_entry(
    base_url: str,
    model: str,
    roles: tuple[Role, ...],
    *,
    name: str | None = None,
    product: str = "",
    saved: Sequence[SavedModel] = (),
) -> SavedModel:
    """The entry of a model at an endpoint. Without a `name` it gets one that no other model in `saved` has.

    Raises `BadRequestError` for an address or a name that cannot be used.
    """
    try:
        chosen = name or _make_free_name(base_url, model, product, saved)
        return SavedModel(name=chosen, model=model, base_url=base_url, roles=roles, product=product)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise BadRequestError(describe_first_fault(error), param=where or None) from error
    except ValueError as error:  # brackets in which there is no address
        raise BadRequestError(f"base_url: {base_url!r} is not an address", param="base_url") from error


def make_file_entry(file: Path, roles: tuple[Role, ...], name: str | None) -> SavedModel:
    """The entry of a model file, by its absolute path."""
    path = file.expanduser().resolve()
    stem = Path(remove_part_number(path.name)).stem
    chosen = name or make_endpoint_name("", stem)
    return SavedModel(name=chosen, model=stem.replace(",", "-"), file=str(path), roles=roles, product="llama.cpp")


def _make_free_name(base_url: str, model: str, product: str, saved: Sequence[SavedModel]) -> str:
    """A name for a model: the one that it is saved under, else that of its endpoint, else one with the model in it."""
    places = {one.name: (one.base_url, one.model) for one in saved}
    by_endpoint = make_endpoint_name(base_url, product)
    by_model = make_endpoint_name("", f"{by_endpoint} {model.rsplit('/', maxsplit=1)[-1]}")
    numbered = (f"{by_model[:28]}-{number}" for number in count(2))
    own = [name for name, place in places.items() if place == (base_url, model)]
    return next(name for name in chain(own, (by_endpoint, by_model), numbered) if name in own or name not in places)


def make_endpoint_name(base_url: str, product: str = "") -> str:
    """A short name for an endpoint: its program's, or its host's."""
    host = (urlsplit(base_url).hostname or "").removeprefix("api.")
    named = _NOT_IN_NAMES.sub("-", (product or host).lower()).strip("-")
    return (named if named[:1].isalpha() else f"at-{named}")[:32].rstrip("-") or "endpoint"
