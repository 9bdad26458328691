"""`create_app(settings)`: routes, lifespan and middleware."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import FastAPI

from agent.core.settings import Settings
from gateway import errors
from gateway.auth.authentication import read_key
from gateway.bootstrap import Stepgate, build_gateway
from gateway.deferred_response import DeferredResponseMiddleware
from gateway.doors import (
    agent,
    audit,
    catalogue,
    citations,
    collections,
    conversations,
    documents,
    ingestion,
    memories,
    openai,
    query,
    rooms,
    runs,
    sessions,
    sources,
    tasks,
    users,
    web_page,
)
from gateway.doors.lazy_mcp import LazyMcpDoor
from gateway.idempotency.middleware import IdempotencyMiddleware
from gateway.limits.http_limits import BodyLimitMiddleware, HeaderLimitMiddleware, RequestIdMiddleware
from gateway.observe.access_log import RequestLogMiddleware
from gateway.observe.metrics import MetricsMiddleware

if TYPE_CHECKING:
    from mcp_tools.server.extras import ExtrasFactory


def create_app(
    settings: Settings, stepgate: Stepgate | None = None, mcp_extras: "ExtrasFactory | None" = None
) -> FastAPI:
    """Returns the ASGI application over `stepgate`; without one, its lifespan builds a gateway and drains it at the
    end.

    `mcp_extras` adds tools, prompts and resources to the MCP server. Only the conformance tests use it.
    """

    mcp = LazyMcpDoor(settings, mcp_extras)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            wired = await stack.enter_async_context(build_gateway(settings)) if stepgate is None else stepgate
            app.state.stepgate = wired
            await stack.enter_async_context(mcp.serve(wired))
            yield

    app = FastAPI(
        title="Stepgate",
        version=version("stepgate"),
        lifespan=lifespan,
        # FastAPI's pages load scripts from other hosts; any local viewer can read /openapi.json.
        docs_url=None,
        redoc_url=None,
        # A client that follows the redirect of a POST may lose its body: a 404 with a hint is better.
        redirect_slashes=False,
    )
    served = (
        openai, agent, query, runs, memories, collections, documents, citations, ingestion, tasks, catalogue,
        conversations, sessions, sources, audit, users, rooms,
    )  # fmt: skip
    doors = [door.router for door in served]
    if settings.web:
        doors.insert(0, web_page.router)  # before the door that answers `/` with JSON
    # Not `include_router`: nested routers add a match and a frame to every request.
    app.router.routes.extend([*(route for router in doors for route in router.routes), *mcp.routes])
    errors.install_error_handlers(app, [*(route for router in doors for route in router.routes), *mcp.routes])
    # The last one added is the outermost: every response has a request id, refusals too.
    uploads = {documents.UPLOAD_PATH: settings.max_upload_bytes + documents.FORM_BYTES}
    app.add_middleware(DeferredResponseMiddleware)
    app.add_middleware(
        IdempotencyMiddleware,
        store=lambda: app.state.stepgate.idempotency,
        authenticate=lambda headers: app.state.stepgate.authenticator.authenticate(read_key(headers)),
    )
    app.add_middleware(
        BodyLimitMiddleware, max_bytes=settings.max_body_bytes, uploads=uploads, seconds=settings.body_seconds
    )
    app.add_middleware(HeaderLimitMiddleware, max_bytes=settings.max_header_bytes)
    app.add_middleware(RequestLogMiddleware)
    app.add_middleware(RequestIdMiddleware)
    if settings.metrics:
        app.add_middleware(MetricsMiddleware, metrics=lambda: app.state.stepgate.metrics)
    return app
