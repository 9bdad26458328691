"""Routes that FastAPI analyses at their first request: it builds validators for every parameter, body and response, and
most processes serve few of the routes.
"""

from collections.abc import Callable
from typing import Any

from fastapi.routing import APIRoute
from starlette.routing import compile_path, get_name


class DeferredRoute(APIRoute):
    """A route that begins with what matching a request reads. The first use of any other attribute, by a request or by
    `/openapi.json`, builds the rest.

    A mistake in an endpoint's signature is therefore found by the tests, which build every route, not at start.
    """

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
