"""`stepgate models list|use|probe|pull|remove`: the models of this gateway, and those found on this machine."""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from agent.core.errors import ConfigError
from gateway.cli import lazy_rich
from gateway.cli.groups import HelpfulGroup
from gateway.cli.model_pull import pull
from gateway.cli.session import load_command_settings, print_json, set_up_logging

if TYPE_CHECKING:
    from agent.llm.discovery import FoundEndpoint
    from agent.llm.listed_models import ListedModel
    from agent.llm.tiers import ConfiguredModel
    from gateway.live_models import LiveModels
    from gateway.model_choice import CheckedModel, Discovered

T = TypeVar("T")
app = typer.Typer(help="Models: list, use, probe, pull, remove.", cls=HelpfulGroup)

_OVERRIDDEN = "note: the environment names other models (AGENT_LLM_BASE_URL, AGENT_MODEL_FAST); they win until unset"


@app.command("list")
def list_models(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the configured models with their state, and the models found on this machine."""
    from gateway.model_choice import check_configured, find_endpoints, format_offer  # noqa: PLC0415 - the models; `--help` needs none

    async def read(live: "LiveModels") -> "tuple[list[CheckedModel], Discovered]":
        known_models = (*live.tiers.configured, *live.unused)
        return await check_configured(live), await find_endpoints(live.settings, known_models)

    configured, discovered = _run(read)
    if as_json:
        model_rows = [{**asdict(one.model), "state": one.state, "reason": one.reason} for one in configured]
        print_json({"configured": model_rows, "found": discovered.found, "not_searched": discovered.obstacle})
        return
    rows = [
        (
            one.model.name,
            one.model.model,
            ", ".join(one.model.roles),
            one.model.base_url or one.model.file or "LiteLLM",
            one.state,
        )
        for one in configured
    ]
    lazy_rich.print_rows(("name", "model", "roles", "endpoint", "state"), rows, empty="No model: rules mode.")
    for one in configured:
        if one.reason:
            print(f"{one.model.name}: {one.reason}")
    for endpoint in discovered.found:
        print(format_offer(endpoint))
    if discovered.obstacle:
        print(f"This machine was not searched for models: {discovered.obstacle}.")


@app.command()
def use(
    model: Annotated[str, typer.Argument(help="The model, as its endpoint names it, or a GGUF file.")],
    at: Annotated[str | None, typer.Option(help="Address of the endpoint; unset: found on this machine.")] = None,
    key_env: Annotated[str | None, typer.Option(help="Environment variable with the endpoint's key.")] = None,
    key_file: Annotated[Path | None, typer.Option(help="File with the endpoint's key.")] = None,
    role: Annotated[list[str] | None, typer.Option(help="fast or high; unset: both. Repeatable.")] = None,
    name: Annotated[str | None, typer.Option(help="Short name of the entry; unset: made from the endpoint.")] = None,
) -> None:
    """Try a model with one real call, then save it before the others. A running gateway uses it at once."""
    from agent.llm.model_address import read_address, read_key  # noqa: PLC0415
    from agent.llm.saved_models import BOTH_ROLES  # noqa: PLC0415 - as above
    from gateway.model_choice import (  # noqa: PLC0415
        choose_model,
        find_endpoints,
        make_endpoint_entry,
        make_file_entry,
    )

    roles = tuple(one for one in BOTH_ROLES if one in (role or BOTH_ROLES))
    if not roles or set(role or ()) - {*BOTH_ROLES}:
        raise typer.BadParameter("fast or high", param_hint="--role")
    login = None
    if at is not None:
        try:
            address = read_address(at)
        except ValueError as error:
            raise typer.BadParameter(f"it {error}", param_hint="--at") from error
        at, login = address.base_url, address.login
    written = _read_key(key_env, key_file)
    try:
        key = login if written is None else read_key(written)
    except ValueError as error:
        raise typer.BadParameter(f"the key {error}", param_hint="--key-env or --key-file") from error
    is_file = at is None and model.lower().endswith(".gguf") and _is_file(model)

    async def choose(live: "LiveModels") -> None:
        url, product, chosen = at, "", model
        if is_file:
            entry = make_file_entry(Path(model), roles, name)
            trial = await choose_model(live, entry, None)
            print(f"{entry.file} was loaded and answered in {trial.seconds:.1f} s; saved as {entry.name!r}")
            return
        if url is None:
            endpoint, listed = _pick(model, await find_endpoints(live.settings))
            url, product, chosen = endpoint.base_url, endpoint.product, listed.name
        saved = await asyncio.to_thread(live.saved.read)
        entry = make_endpoint_entry(url, chosen, roles, name=name, product=product, saved=saved)
        trial = await choose_model(live, entry, key)
        answered = f"{chosen} at {trial.base_url} answered in {trial.seconds:.1f} s"
        print(f"{answered}; saved as {entry.name!r} in {live.saved.path}")
        if live.settings.is_llm_configured:
            print(_OVERRIDDEN, file=sys.stderr)

    _run(choose)


@app.command()
def probe(
    model: Annotated[str | None, typer.Argument(help="A configured model, or its name; unset: the fast one.")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Time limit of all tasks together.")] = 300.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a model with about 25 small tasks, print the results, and use it accordingly."""
    from gateway.model_probe.measuring import ModelMeasurement  # noqa: PLC0415 - as above
    from gateway.model_probe.report import format_outcome, format_record  # noqa: PLC0415

    async def measure(live: "LiveModels") -> None:
        measurement = ModelMeasurement(live, _find_configured(live, model))
        try:
            record = await measurement.run(
                seconds=seconds, report=lambda outcome: print(format_outcome(outcome), file=sys.stderr, flush=True)
            )
        finally:
            await measurement.aclose()
        print(record.model_dump_json(indent=2) if as_json else format_record(record))

    _run(measure)


app.command()(pull)


@app.command()
def remove(name: Annotated[str, typer.Argument(help="The entry's name; see `stepgate models list`.")]) -> None:
    """Remove a saved model and its key."""

    async def remove_one(live: "LiveModels") -> bool:
        return await live.remove(name)

    if not _run(remove_one):
        raise ConfigError(f"no saved model has the name {name!r}; see `stepgate models list`")
    print(f"{name}: removed")


def _is_file(written: str) -> bool:
    """Whether there is such a file. Raises `ConfigError` for a path without one: no program names its models so."""
    try:
        if Path(written).expanduser().is_file():
            return True
    except RuntimeError:  # the home of a user that does not exist
        pass
    if written.startswith(("/", "./", "../", "~")):
        raise ConfigError(f"there is no file {written}; `stepgate models pull` fetches one")
    return False


def _find_configured(live: "LiveModels", name: str | None) -> "ConfiguredModel":
    """A configured model. Raises `ConfigError` for an unknown name."""
    known_models = (*live.tiers.configured, *live.unused)
    if name is None and live.tiers.fast_model is not None:
        return live.tiers.fast_model
    configured = next((one for one in known_models if name in (one.name, one.model)), None)
    if configured is None:
        names = ", ".join(one.name for one in known_models) or "none; choose one with `stepgate models use`"
        raise ConfigError(f"{name or 'a model'} is not configured; there is {names}")
    return configured


def _run(work: "Callable[[LiveModels], Awaitable[T]]") -> T:
    """Runs `work` with the models of the settings and the saved list."""
    from gateway.live_models import open_live_models  # noqa: PLC0415 - as above

    settings = load_command_settings()
    set_up_logging(settings, logging.WARNING)

    async def run() -> T:
        async with AsyncExitStack() as stack:
            return await work(await open_live_models(settings, stack))

    return asyncio.run(run())


def _pick(model: str, discovered: "Discovered") -> "tuple[FoundEndpoint, ListedModel]":
    """The found model that is meant. Raises `ConfigError` if there is none, or several."""
    if discovered.obstacle is not None:
        raise ConfigError(
            f"this machine was not searched for models: {discovered.obstacle}; name the endpoint with --at"
        )
    listed = [(endpoint, one) for endpoint in discovered.found for one in endpoint.models]
    matching = [(endpoint, one) for endpoint, one in listed if model in (one.name, one.short_name)]
    matching = matching or [(endpoint, one) for endpoint, one in listed if one.name == f"{model}:latest"]
    if len(matching) == 1:
        return matching[0]
    if matching:
        places = ", ".join(endpoint.base_url for endpoint, _ in matching)
        raise ConfigError(f"several programs serve {model!r}; name one with --at: {places}")
    names = ", ".join(one.name for _, one in listed) or "no program that serves models"
    raise ConfigError(f"{model!r} was not found on this machine, which has {names}; name its endpoint with --at URL")


def _read_key(variable: str | None, file: Path | None) -> str | None:
    """The key. Raises `ConfigError` if it is not set, and `CredentialError` if others may read the file."""
    if variable is not None:
        value = os.environ.get(variable)
        if not value:
            raise ConfigError(f"--key-env: the environment variable {variable} is not set")
        return value
    if file is None:
        return None
    from agent.storage.credentials import read_password_file  # noqa: PLC0415 - only here

    return read_password_file(file).get_secret_value()
