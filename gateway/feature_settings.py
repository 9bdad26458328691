"""Settings of features: each declares its own in a Pydantic model, read from `AGENT_<FIELD>` as the kernel's are.

A secret is none of them: it belongs to the named credentials (`agent/storage/credentials.py`), which answers are
compared with.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from dotenv import dotenv_values
from pydantic import BaseModel, ValidationError

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from agent.core.settings.aliases import get_variable, list_removed_names
from agent.core.settings.loading import find_unknown_settings, format_errors
from agent.core.settings.secret_files import is_secret
from gateway.feature import Feature
from gateway.feature_loader import (
    KERNEL,
    FeatureConflictError,
    FeatureError,
    HookError,
    LoadedFeatures,
    claim,
    import_target,
    load_features,
)

T = TypeVar("T", bound=BaseModel)


def read_settings(model: type[T], settings: Settings) -> T:
    """A feature's settings, from the environment and `.env`. A program that embeds the gateway gives others to
    `Settings(...)`. Raises `ConfigError` with one line that names every wrong setting."""
    variables = {name.upper(): value for name, value in {**dotenv_values(".env"), **os.environ}.items()}
    read = {name: variables.get(get_variable(name)) for name in model.model_fields}
    values = {**read, **{name: value for name, value in settings.further.items() if name in read}}
    try:
        return model.model_validate({name: value for name, value in values.items() if not _is_empty(value)})
    except ValidationError as error:
        raise ConfigError("; ".join(format_errors(error, model).values())) from error


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def iter_models(features: Iterable[Feature]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yields the names of features with the models of their settings. Raises `HookError` for one that is none."""
    for feature in features:
        if feature.settings is not None:
            model = import_target(feature.settings)
            if not (isinstance(model, type) and issubclass(model, BaseModel)):
                raise HookError(f"{feature.settings} is not a Pydantic model")
            yield feature.name, model


def check_settings(features: Iterable[Feature]) -> None:
    """Raises `FeatureConflictError` if a feature declares a setting that the kernel or another one has, or a secret,
    and `HookError` if its settings cannot be imported."""
    claims = dict.fromkeys(map(get_variable, Settings.model_fields), KERNEL)
    for feature, model in iter_models(features):
        for name, field in model.model_fields.items():
            claim(claims, get_variable(name), feature, "the setting")
            if is_secret(field):
                raise FeatureConflictError(
                    f"the feature {feature!r} declares the secret {get_variable(name)} as a setting; it should read a "
                    "named credential"
                )


def check_further_settings(settings: Settings, features: LoadedFeatures) -> None:
    """Raises `ConfigError` if an argument of `Settings(...)` is neither a setting of the kernel nor of a known feature:
    what a program wants to restrict must not be dropped."""
    names = settings.further.keys() - _list_fields(features) if settings.further else ()
    if names:
        replaced = {**list_removed_names(), **_list_removed_settings(features)}
        hints = ((name, replaced.get(get_variable(name))) for name in sorted(names))
        lines = (f"{name} is not a setting of Stepgate{f': {hint}' if hint else ''}" for name, hint in hints)
        raise ConfigError("; ".join(lines))


def find_unknown_names() -> list[str]:
    """A line for every `AGENT_` name that is not a setting of the kernel or of a known feature, as
    `find_unknown_settings`."""
    try:
        features = load_features("")
    except FeatureError:  # the start says what is wrong with them
        return find_unknown_settings()
    variables = set(map(get_variable, _list_fields(features)))
    return find_unknown_settings(further=variables, removed=_list_removed_settings(features))


def _list_fields(features: LoadedFeatures) -> set[str]:
    """The settings of all known features, without those that cannot be imported."""
    fields = set[str]()
    for feature in features.known:
        with suppress(HookError):  # the start, or `stepgate doctor`, says so
            fields |= {name for _, model in iter_models((feature,)) for name in model.model_fields}
    return fields


def _list_removed_settings(features: LoadedFeatures) -> dict[str, str]:
    return {name: instead for one in features.known for name, instead in one.removed_settings.items()}
