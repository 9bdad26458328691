"""Models whose validators are built at first use: what is wrong with one must not be found by its first user."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel

from agent.core.models import DeferredModel
from agent.core.settings import Settings
from gateway.app import create_app


def list_deferred(of: type[DeferredModel]) -> Iterator[type[DeferredModel]]:
    for model in of.__subclasses__():
        if model.__module__.startswith(("agent.", "gateway.", "mcp_tools.")):
            yield model
            yield from list_deferred(model)


DEFERRED = {f"{model.__module__}.{model.__qualname__}": model for model in list_deferred(DeferredModel)}


@pytest.mark.parametrize("name", sorted(DEFERRED))
def test_the_validators_of_a_deferred_model_can_be_built(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DEFERRED[name].model_rebuild() in (None, True)


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
