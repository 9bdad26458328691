"""The routes of an application: the kernel's and those of its features, in the order of their places."""

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from fastapi.routing import APIRouter
from starlette.routing import BaseRoute, Mount, Route

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.feature import Door
from gateway.feature_loader import FeatureConflictError, LoadedFeatures, claim, import_target

KERNEL = "kernel"
"""Stands for the kernel among the claims."""


def collect_routes(
    own: Iterable[tuple[int, Sequence[BaseRoute]]], features: LoadedFeatures, settings: Settings
) -> list[BaseRoute]:
    """All routes. Raises `ConfigError` if two features claim the same method of a path."""
    groups = [(place, KERNEL, routes) for place, routes in own]
    for feature in features:
        groups += [(door.place, feature.name, _load_door(door, settings)) for door in feature.routes]
    claims: dict[str, str] = {}
    try:
        for _, name, routes in groups:
            for route in routes:
                for named in _name_route(route):
                    claim(claims, named, name, "the route")
    except FeatureConflictError as error:
        raise ConfigError(str(error)) from error
    return [route for _, _, routes in sorted(groups, key=itemgetter(0)) for route in routes]


def collect_upload_limits(features: LoadedFeatures, settings: Settings) -> dict[str, int]:
    """The paths that take uploads, with the most bytes of a body."""
    limits: dict[str, int] = {}
    for feature in features:
        if feature.upload_limits is not None:
            limits |= import_target(feature.upload_limits)(settings)
    return limits


def _load_door(door: Door, settings: Settings) -> Sequence[BaseRoute]:
    target = import_target(door.target)
    if isinstance(target, APIRouter):
        return target.routes
    routes: Sequence[BaseRoute] = target(settings) if callable(target) else target
    return routes


def _name_route(route: BaseRoute) -> Iterator[str]:
    """Yields each method with the path, as a conflict names them."""
    if isinstance(route, Mount):
        yield route.path
    elif isinstance(route, Route):
        yield from (f"{method} {route.path}" for method in sorted(route.methods or {"*"}))
