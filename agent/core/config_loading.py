"""Reading the settings, and saying in plain words what is wrong with them: for the start, and for `stepgate doctor`."""

import difflib
import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from dotenv.parser import Binding, parse_stream
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from agent.core.config import PREFIX, Settings
from agent.core.config_aliases import alias_names, replaced_names
from agent.core.errors import ConfigError


def load_settings(**overrides: Any) -> Settings:
    """Read the settings; `ConfigError` with one line naming each wrong setting."""
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise ConfigError("; ".join(_faults(error).values())) from error


def load_what_is_right() -> tuple[Settings, list[str]]:
    """The settings with every wrong one at its default, and a line for each of those: what `stepgate doctor` needs."""
    try:
        return Settings(), []
    except ValidationError as error:
        faults = _faults(error)
        defaults: dict[str, Any] = {name: Settings.model_fields[name].get_default() for name in faults}
        return Settings(**defaults), list(faults.values())


def unknown_settings(environment: Mapping[str, str] | None = None, env_file: Path = Path(".env")) -> list[str]:
    """One line for every `AGENT_` name that is no setting, with the nearest known one, and for every line of `.env`
    that sets nothing."""
    names = set(os.environ if environment is None else environment)
    lines = []
    for binding in _bindings(env_file):
        if binding.error or (binding.key is not None and binding.value is None):
            lines.append(f"{env_file} line {binding.original.line} is no NAME=value, and is ignored")
        elif binding.key is not None:
            names.add(binding.key)
    known = {PREFIX + name.upper() for name in Settings.model_fields} | alias_names().keys()
    replaced = replaced_names()
    lines += [f"{name} sets nothing here: {replaced[name]}" for name in sorted(names & replaced.keys())]
    for name in sorted(names - known - replaced.keys()):
        if not name.startswith(PREFIX):
            continue
        near = difflib.get_close_matches(name, known, n=1)
        lines.append(f"{name} is no setting of Stepgate" + (f"; did you mean {near[0]}?" if near else ""))
    return lines


def _bindings(env_file: Path) -> Iterator[Binding]:
    """The statements of a `.env` file; none where there is no file."""
    if env_file.is_file():
        yield from parse_stream(io.StringIO(env_file.read_text("utf-8", errors="replace")))


def _faults(error: ValidationError) -> dict[str, str]:
    """A line in plain words by the field it is about."""
    faults: dict[str, str] = {}
    for fault in error.errors():
        name = str(fault["loc"][0])
        expected = _expected(Settings.model_fields[name])
        told = f"must be {expected}" if expected else fault["msg"].removeprefix("Value error, ")
        faults[name] = f"{PREFIX}{name.upper()}: {told}, not {fault['input']!r}"
    return faults


def _expected(field: FieldInfo) -> str:
    """What a number, a switch or a choice may be; empty for the others, whose validators say it themselves."""
    kind = field.annotation
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
