"""`create_app(settings)`: routes, lifespan and middleware."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.routing import BaseRoute

from agent.core.settings import Settings
from agent.core.settings.loading import load_settings
from gateway.access.authentication import Caller, read_key
from gateway.access.head_requests import HeadMiddleware
from gateway.access.http_limits import BodyLimitMiddleware, HeaderLimitMiddleware
from gateway.access.idempotency import IdempotencyMiddleware
from gateway.access.origin_check import BodyTypeMiddleware, OriginCheckMiddleware
from gateway.bootstrap import Stepgate, build_gateway
from gateway.bootstrap_database import Storage
from gateway.configured_features import choose_configured, explain_feature_errors
from gateway.doors import (
    agent,
    approvals,
    audit,
    catalogue,
    file_roots,
    guardrails,
    keys,
    memories,
    messages,
    models_admin,
    openai,
    render,
    run_prompts,
    runs,
    sessions,
    usage,
    users,
    web_page,
)
from gateway.doors.lazy_mcp import LazyMcpDoor
from gateway.feature_loader import LoadedFeatures, import_target, list_hooks
from gateway.feature_page import collect_page
from gateway.feature_routes import collect_routes, collect_upload_limits
from gateway.observe.requests import RequestMiddleware
from gateway.render import error_responses
from gateway.render.deferred_response import DeferredResponseMiddleware
from gateway.worker_process import WorkerProcess


def create_app(
    settings: Settings | None = None,
    stepgate: Stepgate | None = None,
    *,
    storage: "Storage | None" = None,
    worker: WorkerProcess | None = None,
) -> FastAPI:
    """The ASGI application over `stepgate`; without one, its lifespan builds a gateway and drains it at the
    end.

    Without `settings` they are loaded from the environment. `storage` replaces the store of the settings: with
    `agent.storage.journal_sqlite.open_in_memory()` the application runs without a database file, until its end.
    `worker` is this process's place among several behind one port.
    """
    settings = settings or load_settings()
    mcp = LazyMcpDoor(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if stepgate is not None:
                wired = stepgate
            else:
                wired = await stack.enter_async_context(build_gateway(settings, storage=storage))
            app.state.stepgate = wired
            await stack.enter_async_context(mcp.serve(wired))
            yield

    app = FastAPI(
        title="Stepgate",
        version=version("stepgate"),
        lifespan=lifespan,
        servers=[{"url": settings.public_url}] if settings.public_url else None,
        # FastAPI's pages load scripts from other hosts; any local viewer can read /openapi.json.
        docs_url=None,
        redoc_url=None,
        # A client that follows the redirect of a POST may lose its body: a 404 with a hint is better.
        redirect_slashes=False,
        # `gateway/observe/` has the traces and metrics; FastAPI would ask OpenTelemetry at every request.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    features = choose_configured(settings)
    # Not `include_router`: nested routers add a match and a frame to every request.
    routes = [*collect_routes(_list_doors(settings, features), features, settings), *mcp.routes]
    app.router.routes.extend(routes)
    error_responses.install_error_handlers(app, routes)
    _add_middleware(app, settings, features, worker)
    return app


def _add_middleware(app: FastAPI, settings: Settings, features: LoadedFeatures, worker: WorkerProcess | None) -> None:
    """Adds what every request passes. The last one added is the outermost: every response has a request id, refusals
    too."""
    uploads = collect_upload_limits(features, settings)

    async def authenticate(headers: Headers) -> Caller:
        caller: Caller = await app.state.stepgate.authenticator.authenticate(read_key(headers))
        return caller

    app.add_middleware(DeferredResponseMiddleware)
    app.add_middleware(HeadMiddleware)
    app.add_middleware(
        IdempotencyMiddleware,
        store=lambda: app.state.stepgate.idempotency,
        authenticate=authenticate,
    )
    app.add_middleware(BodyTypeMiddleware, form_paths=frozenset(uploads))
    app.add_middleware(
        BodyLimitMiddleware, max_bytes=settings.max_body_bytes, uploads=uploads, seconds=settings.body_seconds
    )
    app.add_middleware(HeaderLimitMiddleware, max_bytes=settings.max_header_bytes)
    app.add_middleware(OriginCheckMiddleware, settings=settings, authenticate=authenticate)
    app.add_middleware(RequestMiddleware, state=app.state, counts=settings.metrics)
    if worker is not None:
        for _, target in list_hooks(features, lambda feature: feature.middleware):
            with explain_feature_errors():
                app.add_middleware(import_target(target), worker=worker)


def _list_doors(settings: Settings, features: LoadedFeatures) -> Iterator[tuple[int, Sequence[BaseRoute]]]:
    """Yields the kernel's routes with their places among those of features."""
    for place, router in _DOORS:
        yield place, router.routes
    if settings.web:
        # After the busiest door, whose requests need not be matched with it; before the one that answers `/` with JSON.
        with explain_feature_errors():
            page = collect_page(features)
        yield 11, web_page.make_router(web_page.PageFiles(page)).routes


_DOORS = (
    (10, openai.router),
    (60, agent.router),
    (90, runs.router),
    (90, runs.decisions),
    (100, approvals.router),
    (110, memories.router),
    (170, catalogue.router),
    (170, catalogue.probes),
    (190, sessions.router),
    (210, audit.router),
    (220, usage.router),
    (230, users.router),
    (240, guardrails.router),
    (330, render.router),
    (340, messages.router),
    (350, models_admin.router),
    (355, file_roots.router),
    (360, keys.router),
    (370, run_prompts.router),
)
"""The kernel's doors with their places in the OpenAPI document."""
