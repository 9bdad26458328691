"""`create_app(settings)`: routes, lifespan and middleware."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import FastAPI

from agent.core.config import Settings
from gateway import errors
from gateway.awaited import AwaitedMiddleware
from gateway.bootstrap import Stepgate, build
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
    pages,
    query,
    runs,
    sessions,
    sources,
    tasks,
    users,
)
from gateway.doors.mcp_on_demand import McpOnDemand
from gateway.gatekeeper import key_of
from gateway.idempotency import IdempotencyMiddleware
from gateway.limits import BodyLimitMiddleware, HeaderLimitMiddleware, RequestIdMiddleware
from gateway.observe.lines import RequestLogMiddleware
from gateway.observe.metrics import MetricsMiddleware

if TYPE_CHECKING:
    from mcp_tools.server_extras import ExtrasOf


def create_app(settings: Settings, stepgate: Stepgate | None = None, mcp_extras: "ExtrasOf | None" = None) -> FastAPI:
    """The ASGI application over `stepgate`; without one, its lifespan wires a gateway and drains it.

    `mcp_extras` adds tools, prompts and resources to the MCP server: the seam of the conformance tests."""

    mcp = McpOnDemand(settings, mcp_extras)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            wired = await stack.enter_async_context(build(settings)) if stepgate is None else stepgate
            app.state.stepgate = wired
            await stack.enter_async_context(mcp.serve(wired))
            yield

    app = FastAPI(
        title="Stepgate",
        version=version("stepgate"),
        lifespan=lifespan,
        # These pages load their scripts from the net; /openapi.json is there for any local viewer.
        docs_url=None,
        redoc_url=None,
        # A client that follows a redirect of a POST may lose its body: such a path is told instead.
        redirect_slashes=False,
    )
    served = (
        openai, agent, query, runs, memories, collections, documents, citations, ingestion, tasks, catalogue,
        conversations, sessions, sources, audit, users,
    )  # fmt: skip
    doors = [door.router for door in served]
    if settings.web:
        doors.insert(0, pages.router)  # before the door that answers `/` with JSON
    # Not `include_router`: each router in the other is matched once more, and waits for its answers as well.
    app.router.routes.extend([*(route for router in doors for route in router.routes), *mcp.routes])
    errors.install(app, [*(route for router in doors for route in router.routes), *mcp.routes])
    # The last added is the outermost: every answer carries a request id, the refused ones too.
    uploads = {documents.PATH: settings.max_upload_bytes + documents.FORM_BYTES}
    app.add_middleware(AwaitedMiddleware)
    app.add_middleware(
        IdempotencyMiddleware,
        store=lambda: app.state.stepgate.idempotency,
        admit=lambda headers: app.state.stepgate.gatekeeper.caller(key_of(headers)),
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
