"""The routes of an application: the kernel's and those of its features, in the order of their places."""

import re
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from fastapi.routing import APIRouter
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from agent.core.settings import Settings
from gateway.configured_features import explain_feature_errors
from gateway.feature import Door
from gateway.feature_loader import KERNEL, LoadedFeatures, claim, import_target


def collect_routes(
    own: Iterable[tuple[int, Sequence[BaseRoute]]], features: LoadedFeatures, settings: Settings
) -> list[BaseRoute]:
    """All routes. Raises `ConfigError` if two features claim the same method of a path, or a door cannot be
    imported."""
    groups = [(place, KERNEL, routes) for place, routes in own]
    with explain_feature_errors():
        for feature in features:
            groups += [(door.place, feature.name, _load_door(door, settings)) for door in feature.routes]
        _check_claims([(name, route) for _, name, routes in groups for route in routes])
    return [route for _, _, routes in sorted(groups, key=itemgetter(0)) for route in routes]


def collect_upload_limits(features: LoadedFeatures, settings: Settings) -> dict[str, int]:
    """The paths that take uploads, with the most bytes of a body. Raises `ConfigError` if two features claim one."""
    limits: dict[str, int] = {}
    claims: dict[str, str] = {}
    with explain_feature_errors():
        for feature in features:
            if feature.upload_limits is not None:
                for path, most in import_target(feature.upload_limits)(settings).items():
                    claim(claims, path, feature.name, "the limit of uploads to")
                    limits[path] = most
    return limits


def _load_door(door: Door, settings: Settings) -> Sequence[BaseRoute]:
    target = import_target(door.target)
    if isinstance(target, APIRouter):
        return target.routes
    routes: Sequence[BaseRoute] = target(settings) if callable(target) else target
    return routes


def _check_claims(routes: Sequence[tuple[str, BaseRoute]]) -> None:
    """Raises `FeatureConflictError` if two features claim one route, or one mounts an application above the other's.

    `/poems/{id}` and `/poems/{title}` are one route. `/poems/{title}` and `/poems/new` are two: their order decides.
    """
    claims: dict[str, str] = {}
    mounts = [(name, _anonymize(route.path)) for name, route in routes if isinstance(route, Mount)]
    for name, route in routes:
        for named in _name_route(route):
            claim(claims, named, name, "the route")
        if isinstance(route, Route | WebSocketRoute | Mount):
            below = f"{_anonymize(route.path)}/"
            for owner, path in mounts:
                if below.startswith(f"{path}/"):
                    claim({path: owner}, path, name, "the routes below")


def _name_route(route: BaseRoute) -> Iterator[str]:
    """Yields each method with the path, as a conflict names them. The names of parameters distinguish nothing."""
    if isinstance(route, WebSocketRoute):
        yield f"WEBSOCKET {_anonymize(route.path)}"
    elif isinstance(route, Route):
        yield from (f"{method} {_anonymize(route.path)}" for method in sorted(route.methods or {"*"}))


def _anonymize(path: str) -> str:
    return re.sub(r"\{\w+", "{", path)
