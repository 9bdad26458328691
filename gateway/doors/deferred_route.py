"""Routes that FastAPI analyses at their first request: it builds validators for every parameter, body and response, and
most processes serve few of the routes.
"""

import difflib
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, ClassVar

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.routing import compile_path, get_name

from gateway.render.errors import RequestFormatError


class DeferredRoute(APIRoute):
    """A route that begins with what matching a request reads. The first use of any other attribute, by a request or by
    `/openapi.json`, builds the rest.

    A mistake in an endpoint's signature is therefore found by the tests, which build every route, not at start.
    Query parameters that the route does not declare are refused.
    """

    takes_any_query: ClassVar[bool] = False
    """Whether undeclared query parameters are ignored instead."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        name: str | None = None,
        methods: set[str] | list[str] | None = None,
        **options: Any,
    ) -> None:
        self.path = path
        self.endpoint = endpoint
        self.name = get_name(endpoint) if name is None else name
        self.methods = {method.upper() for method in methods or ("GET",)}
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self._options: dict[str, Any] | None = options

    def __getattr__(self, name: str) -> Any:
        options = self.__dict__.pop("_options", None)
        if options is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.build(options)
        return getattr(self, name)

    def build(self, options: dict[str, Any]) -> None:
        """Builds what the constructor has left out. Called once."""
        super().__init__(self.path, self.endpoint, name=self.name, methods=self.methods, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, called once the query has no unknown parameter."""
        handle = super().get_route_handler()
        if self.takes_any_query:
            return handle
        names = sorted(set(_list_query_names(self.dependant)))

        async def check_query(request: Request) -> Response:
            _refuse_unknown_parameters(request.query_params, names)
            return await handle(request)

        return check_query


class OpenRoute(DeferredRoute):
    """A route that ignores undeclared query parameters: those of monitors, browsers and a protocol's other clients."""

    takes_any_query = True


def _list_query_names(dependant: Dependant) -> Iterator[str]:
    """The names of the query parameters of a route and its dependencies."""
    for field in dependant.query_params:
        kind = field.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from (part.alias or name for name, part in kind.model_fields.items())
        else:
            yield field.alias
    for inner in dependant.dependencies:
        yield from _list_query_names(inner)


def _refuse_unknown_parameters(given: Iterable[str], names: list[str]) -> None:
    for name in given:
        if name in names:
            continue
        excerpt = name[:100]
        near = difflib.get_close_matches(excerpt, names, n=1)
        if near:
            hint = f"Did you mean '{near[0]}'?"
        else:
            hint = f"The parameters are {', '.join(names)}." if names else "There are no query parameters here."
        raise RequestFormatError(f"Unknown query parameter: '{excerpt}'. {hint}", excerpt, "unknown_parameter")
