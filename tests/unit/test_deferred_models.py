"""Models and routes whose validators are built at first use: their mistakes must not be found by their first users."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.routing import Match

from agent.core.models import DeferredModel
from agent.core.settings import Settings
from gateway.app import create_app
from gateway.doors.deferred_route import DeferredRoute


def list_deferred(of: type[DeferredModel]) -> Iterator[type[DeferredModel]]:
    for model in of.__subclasses__():
        if model.__module__.startswith(("agent.", "gateway.", "mcp_tools.")):
            yield model
            yield from list_deferred(model)


DEFERRED = {f"{model.__module__}.{model.__qualname__}": model for model in list_deferred(DeferredModel)}


def test_the_validators_of_a_deferred_model_can_be_built() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, model in sorted(DEFERRED.items()):
            assert model.model_rebuild() in (None, True), name


def test_every_route_can_be_built(tmp_path: Path) -> None:
    routes = [
        route for route in create_app(Settings(_env_file=None, data_dir=tmp_path)).routes if isinstance(route, APIRoute)
    ]
    assert len(routes) > 100
    for route in routes:
        assert isinstance(route, DeferredRoute), route.path
        assert callable(route.app)


def test_a_route_is_built_by_its_first_use() -> None:
    route = DeferredRoute("/things/{number}", get_thing, methods=["get"])
    assert route.matches({"type": "http", "path": "/things/1", "method": "GET"})[0] is Match.FULL
    assert "dependant" not in vars(route)
    assert [field.name for field in route.dependant.path_params] == ["number"]
    with pytest.raises(AttributeError, match="no_such_attribute"):
        _ = route.no_such_attribute


def get_thing(number: int) -> int:
    return number


def test_no_parameter_of_a_route_is_deferred(tmp_path: Path) -> None:
    for route in create_app(Settings(_env_file=None, data_dir=tmp_path)).routes:
        if not isinstance(route, APIRoute):
            continue
        given = route.dependant
        fields = [*given.path_params, *given.query_params, *given.header_params, *given.body_params]
        for field in fields:
            kind = field.field_info.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                assert not kind.model_config.get("defer_build"), (route.path, kind)
