"""Loads features: the shipped ones and those of installed packages, in the order of their needs.

One that cannot be imported is skipped and named by `stepgate doctor`; two that claim one thing stop the start.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gateway.feature import Command, Feature, Target, Toolset
from gateway.shipped_features import SHIPPED

GROUP = "stepgate.features"
VARIABLE = "AGENT_FEATURES"
KERNEL = "kernel"
"""Stands for the kernel among the claims."""


class FeatureError(Exception):
    """Raised for what is wrong with features. It is no `AgentError`: listing the commands imports none of them."""


class FeatureConflictError(FeatureError):
    """Raised if features contradict each other: two with one name, command or route, or a circle of needs."""


class HookError(FeatureError):
    """Raised if the module of a hook cannot be imported, as where a library is missing."""


@dataclass(frozen=True, slots=True)
class FeatureSource:
    """Where a feature comes from. `name` names it in AGENT_FEATURES while it cannot be imported."""

    name: str
    origin: str
    load: Callable[[], Any]
    is_installed: bool = False
    """Whether a package other than ours brings it."""


@dataclass(frozen=True, slots=True)
class SkippedFeature:
    """A feature that is not in use. `origin` is where it comes from."""

    name: str
    origin: str
    error: str


@dataclass(frozen=True, slots=True)
class LoadedFeatures:
    """The features in use, each after those that it needs, and the skipped ones."""

    features: tuple[Feature, ...]
    known: tuple[Feature, ...] = ()
    """Those that could be imported, on or off, in the same order: their tables are there and are deleted from."""
    skipped: tuple[SkippedFeature, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where each known feature comes from: `module:name`, with the package and its version if that is not ours."""
    unread: tuple[str, ...] = ()
    """The skipped ones that could not be imported: nobody knows what they keep."""

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.features)

    def __contains__(self, name: str) -> bool:
        return any(feature.name == name for feature in self.features)

    @property
    def are_some_off(self) -> bool:
        """Whether a known feature is off."""
        return len(self.features) < len(self.known)

    def list_installed(self) -> list[tuple[str, str]]:
        """The features in use that other packages bring: each name, and its package with version and module."""
        origins = ((feature.name, self.origins[feature.name].partition(" of ")) for feature in self.features)
        return [(name, f"{package} ({target})") for name, (target, _, package) in origins if package]

    def list_unreachable_keepers(self) -> tuple[str, ...]:
        """Features that are not in use and keep things of owners outside of tables, or may: nobody can ask them."""
        return (*(one.name for one in self.known if one.owned_stores and one.name not in self), *self.unread)

    def list_missing_rooms(self) -> set[str]:
        """The shipped rooms of the features that are off."""
        return {room for feature in self.known if feature.name not in self for room in feature.rooms}

    def list_toolsets(self) -> tuple[Toolset, ...]:
        """The toolsets of all known features, those in use first: what names the toolset of one that is off stays
        valid. Its tools are not there then, so that nothing is said about their use."""
        off = [feature for feature in self.known if feature.name not in self]
        return (
            *(toolset for feature in self.features for toolset in feature.toolsets),
            *(replace(toolset, use="") for feature in off for toolset in feature.toolsets),
        )

    def list_commands(self, group: str = "") -> dict[str, Command]:
        """The commands by name, in order of place: those of `stepgate`, or what features add to a group of the
        kernel. Raises `FeatureConflictError` if two have one name.
        """
        claims: dict[str, str] = {}
        commands: dict[str, Command] = {}
        for feature in self.features:
            for name, command in feature.commands.items():
                claim(claims, name, feature.name, "the command")
                commands[name] = command
        ordered = sorted(commands.items(), key=lambda item: item[1].place)
        words = ((name.rpartition(" "), command) for name, command in ordered)
        return {name: command for (before, _, name), command in words if before == group}


def claim(claims: dict[str, str], name: str, feature: str, noun: str) -> None:
    """Records that a feature claims a name. Raises `FeatureConflictError` if another one has claimed it."""
    other = claims.setdefault(name, feature)
    if other != feature:
        off = other if feature == KERNEL else feature
        raise FeatureConflictError(
            f"the features {other!r} and {feature!r} both claim {noun} {name!r}; switch one off: {VARIABLE}=-{off}"
        )


def load_features(
    choice: str | None = None, *, with_installed: bool = True, checks_hooks: bool = False
) -> LoadedFeatures:
    """The features that `choice` (AGENT_FEATURES) leaves on, by default that of the environment.

    See `choose_features`. Raises `FeatureConflictError`.
    """
    wanted = os.environ.get(VARIABLE, "") if choice is None else choice
    sources = [*_list_shipped(), *(_list_installed() if with_installed else ())]
    return choose_features(sources, wanted, names_all=with_installed, checks_hooks=checks_hooks)


def choose_features(
    sources: Iterable[FeatureSource], choice: str, *, names_all: bool = True, checks_hooks: bool = False
) -> LoadedFeatures:
    """The features of `sources` as `choice` says: names to use alone, or `-name` to leave out.

    With `names_all` the sources are all there are, so that a choice of another one is an error. With `checks_hooks`
    an installed feature is skipped if one of its hooks cannot be imported. Raises `FeatureConflictError`."""
    loaded: dict[str, tuple[Feature, str]] = {}
    skipped: list[SkippedFeature] = []
    installed: set[str] = set()
    for source in sources:
        try:
            feature = source.load()
            if not isinstance(feature, Feature):
                raise TypeError(f"{source.origin} names a {type(feature).__name__}, not a Feature")
        except Exception as error:  # noqa: BLE001 - foreign code: whatever it raises, the gateway starts without it
            skipped.append(SkippedFeature(source.name, source.origin, _describe_problem(error)))
            continue
        if feature.name in loaded:
            raise FeatureConflictError(
                f"two features are called {feature.name!r}: {loaded[feature.name][1]} and {source.origin}"
            )
        loaded[feature.name] = (feature, source.origin)
        installed |= {feature.name} if source.is_installed else set()
    unread = tuple(one.name for one in skipped)
    on = _apply_choice(loaded, choice, unread if names_all else None)
    for name in sorted(installed & on) if checks_hooks else ():
        try:
            _import_hooks(loaded[name][0])
        except HookError as error:
            skipped.append(SkippedFeature(name, loaded[name][1], str(error)))
            on.remove(name)
    features_that_load = tuple(_order(loaded, set(loaded), []))
    origins = {name: origin for name, (_, origin) in loaded.items()}
    features = LoadedFeatures(tuple(_order(loaded, on, skipped)), features_that_load, tuple(skipped), origins, unread)
    for noun, choose in _CLAIMED.items():
        claims: dict[str, str] = {}
        for feature in features:
            for name in choose(feature):
                claim(claims, name, feature.name, noun)
    return features


_CLAIMED: Mapping[str, Callable[[Feature], tuple[str, ...]]] = {
    "the room": lambda feature: feature.rooms,
    "the table": lambda feature: feature.owned_tables,
    "the toolset": lambda feature: tuple(one.name for one in feature.toolsets if one.description),
}
"""What only one feature may have, beside commands and routes, which are claimed where they are collected."""


def _apply_choice(loaded: Mapping[str, tuple[Feature, str]], choice: str, unread: Iterable[str] | None) -> set[str]:
    """The names that the choice leaves on: those to use alone come with what they need. It may name `unread` ones too,
    without effect; None: any others.

    A shipped feature may be left out although the wheel has left it out already."""
    chosen = [name for name in choice.replace(" ", "").split(",") if name]
    only = {name for name in chosen if not name.startswith("-")}
    without = {name[1:] for name in chosen if name.startswith("-")}
    if "none" in only:
        return set()
    unknown = (only | without.difference(map(_name_shipped, SHIPPED))) - {*loaded, *(unread or ())}
    if unknown and unread is not None:
        there = ", ".join(loaded)
        raise FeatureConflictError(f"{VARIABLE}: there is no feature {min(unknown)!r}; there are {there}")
    return (_add_needs(loaded, only) or {*loaded}) - without


def _add_needs(loaded: Mapping[str, tuple[Feature, str]], names: Iterable[str]) -> set[str]:
    """The features and all that they need, directly or through others."""
    wanted, left = set[str](), [*names]
    while left:
        name = left.pop()
        if name not in wanted:
            wanted.add(name)
            left += loaded[name][0].needs if name in loaded else ()
    return wanted


def _import_hooks(feature: Feature) -> None:
    """Imports all hooks of a feature but its commands. Raises `HookError`."""
    values = (getattr(feature, one.name) for one in fields(feature) if one.type == Target | None)
    for target in (*values, *(door.target for door in feature.routes)):
        if target is not None:
            import_target(target)
    if feature.room_folder:
        find_folder(feature.room_folder)
    if feature.page is not None:
        folder = find_folder(feature.page.folder)
        for module in feature.page.list_modules():
            if not (folder / module).is_file():
                raise HookError(f"{feature.page.folder} has no file {module!r}, which the page of the feature names")


def _describe_problem(error: Exception) -> str:
    kind = "" if isinstance(error, FeatureError) else f"{type(error).__name__}: "
    return " ".join(f"{kind}{error}".split())[:300]


def _order(loaded: Mapping[str, tuple[Feature, str]], on: set[str], skipped: list[SkippedFeature]) -> Iterator[Feature]:
    """Yields the features that are on, each after its needs. One whose needs are off is skipped."""
    done: dict[str, bool] = {}

    def visit(name: str, path: tuple[str, ...]) -> Iterator[Feature]:
        if name in path:
            raise FeatureConflictError(f"features need each other in a cycle: {' -> '.join((*path, name))}")
        if name in done:
            return
        feature, origin = loaded[name]
        for need in feature.needs:
            if need in loaded:
                yield from visit(need, (*path, name))
        missing = next((need for need in feature.needs if not done.get(need)), None)
        done[name] = name in on and missing is None
        if name in on and missing is not None:
            skipped.append(SkippedFeature(name, origin, f"it needs the feature {missing!r}, which is off"))
        elif name in on:
            yield feature

    for name in loaded:
        yield from visit(name, ())


def list_hooks(features: LoadedFeatures, choose: Callable[[Feature], Target | None]) -> list[tuple[str, Target]]:
    """The names of features and their hooks of one kind, without those that have none."""
    return [(feature.name, target) for feature in features if (target := choose(feature)) is not None]


def find_hook(features: LoadedFeatures, choose: Callable[[Feature], Target | None], noun: str) -> Target | None:
    """The hook that only one feature may have. Raises `FeatureConflictError` if two have it."""
    hooks = list_hooks(features, choose)
    claims: dict[str, str] = {}
    for name, _ in hooks:
        claim(claims, noun, name, "the hook for")
    return hooks[0][1] if hooks else None


def import_target(target: Target) -> Any:
    """Imports what `module:name` names. Raises `HookError`."""
    module, _, name = target.partition(":")
    try:
        return getattr(import_module(module), name)
    except Exception as error:
        raise HookError(f"{target} cannot be imported: {_describe_problem(error)}") from error


def find_folder(target: str) -> Path:
    """The folder that `package:folder` names. Raises `HookError` if it is not there."""
    package, _, name = target.partition(":")
    try:
        file = import_module(package).__file__
    except Exception as error:
        raise HookError(f"{target} cannot be found: {_describe_problem(error)}") from error
    if file is None:
        raise HookError(f"{target} cannot be found: {package} has no __init__.py")
    folder = Path(file).parent / name
    if not folder.is_dir():
        raise HookError(f"{target} cannot be found: {folder} is not a folder")
    return folder


def _list_shipped() -> list[FeatureSource]:
    targets = (target for target in SHIPPED if _is_there(target.partition(":")[0]))
    return [FeatureSource(_name_shipped(target), target, partial(import_target, target)) for target in targets]


def _name_shipped(target: Target) -> str:
    """The name of a shipped feature: its folder's."""
    return target.split(".")[2]


def _is_there(module: str) -> bool:
    """Whether the folder of a shipped feature is there: the wheel leaves the evaluation out."""
    return find_spec(module.rpartition(".")[0]) is not None


@cache
def _list_installed() -> tuple[FeatureSource, ...]:
    """Those of installed packages. Finding them reads a file of each package: once a process."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - parses mail headers, with all of `email`

    points = sorted(entry_points(group=GROUP), key=lambda one: (one.name, one.value))
    packages = [f"{one.dist.name} {one.dist.version}" if one.dist else "an unnamed package" for one in points]
    return tuple(
        FeatureSource(one.name, f"{one.value} of {package}", one.load, is_installed=True)
        for package, one in zip(packages, points, strict=True)
    )
