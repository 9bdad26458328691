"""Loads the settings and explains in plain words what is wrong with them, at start and for `stepgate doctor`."""

import difflib
import io
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, Literal, get_args, get_origin

from dotenv.parser import Binding, parse_stream
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from agent.core.errors import ConfigError
from agent.core.settings import PREFIX, Settings
from agent.core.settings.aliases import get_variable, list_alias_names, list_removed_names, list_replaced_names
from agent.core.settings.constants import ConstantSettings
from agent.core.settings.derived import DerivedSettings
from agent.core.settings.secret_files import SUFFIX, is_secret
from agent.core.value_faults import describe_fault


def load_settings(**overrides: Any) -> Settings:
    """Loads the settings. Raises `ConfigError` with one line that names every wrong setting."""
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise ConfigError("; ".join(format_errors(error).values())) from error


def load_valid_settings() -> tuple[Settings, list[str]]:
    """Loads the settings with the defaults in place of wrong values, and returns one line for each wrong value."""
    try:
        return Settings(), []
    except ValidationError as error:
        faults = format_errors(error)
        defaults: dict[str, Any] = {name: Settings.model_fields[name].get_default() for name in faults}
        return Settings(**defaults), list(faults.values())


def find_unknown_settings(
    environment: Mapping[str, str] | None = None,
    env_file: Path = Path(".env"),
    *,
    further: Collection[str] = (),
    removed: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """A line for every `AGENT_` name that is not a setting, with the nearest known name, and for every line of `.env`
    that sets nothing. `further` are names of other settings, `removed` former ones with what replaces each.
    """
    names = set(os.environ if environment is None else environment)
    lines = []
    for binding in _read_env_file(env_file):
        if binding.error or (binding.key is not None and binding.value is None):
            lines.append(f"{env_file} line {binding.original.line} is not of the form NAME=value and is ignored")
        elif binding.key is not None:
            names.add(binding.key)
    fixed = {*ConstantSettings.model_fields, *DerivedSettings.model_fields}
    known_variables = {get_variable(name) for name in Settings.model_fields if name not in fixed}
    known_variables |= {*list_alias_names(), *further}
    known_variables |= {
        f"{get_variable(name)}{SUFFIX}" for name, field in Settings.model_fields.items() if is_secret(field)
    }
    replaced = {**list_replaced_names(), **list_removed_names(), **removed}
    lines += [f"{name} has no effect: {replaced[name]}" for name in sorted(names & replaced.keys())]
    for name in sorted(names - known_variables - replaced.keys()):
        if not name.startswith(PREFIX):
            continue
        near = difflib.get_close_matches(name, known_variables, n=1)
        lines.append(f"{name} is not a setting of Stepgate" + (f"; did you mean {near[0]}?" if near else ""))
    return lines


def _read_env_file(env_file: Path) -> Iterator[Binding]:
    """Yields the statements of a `.env` file, nothing if there is no file."""
    if env_file.is_file():
        yield from parse_stream(io.StringIO(env_file.read_text("utf-8", errors="replace")))


def format_errors(error: ValidationError, model: type[BaseModel] = Settings) -> dict[str, str]:
    """One line in plain words for each field that failed validation."""
    faults: dict[str, str] = {}
    for fault in error.errors():
        if fault["type"] == "default_factory_not_called":  # a value that follows from one that is wrong
            continue
        name = str(fault["loc"][0])
        if name == "model_endpoints":  # without the input: somebody may have written a key there
            place = ".".join(str(part) for part in fault["loc"][1:])
            description = describe_fault(fault, quote=False)
            faults[name] = f"{PREFIX}{name.upper()}: {place + ': ' if place else ''}{description}"
            continue
        expected = _describe_expected(model.model_fields[name])
        requirement = f"must be {expected}" if expected else describe_fault(fault, quote=False)
        faults[name] = f"{get_variable(name)}: {requirement}, not {fault['input']!r}"
    return faults


def _describe_expected(field: FieldInfo) -> str:
    """Describes the allowed values of a number, switch or choice. Empty for other types: their validators explain."""
    kind: Any = field.annotation
    if isinstance(kind, UnionType):  # an optional setting
        kind = next((one for one in get_args(kind) if one in (int, float)), kind)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(get_args(kind))
    if kind is bool:
        return "true or false"
    if kind not in (int, float):
        return ""
    bounds = {
        name: getattr(rule, name) for rule in field.metadata for name in ("ge", "gt", "le") if hasattr(rule, name)
    }
    least = f" of at least {bounds['ge']}" if "ge" in bounds else f" above {bounds['gt']}" if "gt" in bounds else ""
    if "ge" in bounds and "le" in bounds:
        least = f" from {bounds['ge']} to {bounds['le']}"
    return f"{'a whole number' if kind is int else 'a number'}{least}"
