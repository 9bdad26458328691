"""`create_app(settings)`: routes, lifespan and middleware."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import FastAPI

from agent.core.config import Settings
from gateway import errors
from gateway.bootstrap import Stepgate, build
from gateway.doors import (
    agent,
    catalogue,
    citations,
    collections,
    conversations,
    documents,
    ingestion,
    memories,
    openai,
    query,
    runs,
    sources,
    tasks,
)
from gateway.doors.mcp_on_demand import McpOnDemand
from gateway.idempotency import IdempotencyMiddleware
from gateway.limits import BodyLimitMiddleware, RequestIdMiddleware
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
        conversations, sources,
    )  # fmt: skip
    doors = [door.router for door in served]
    for router in doors:
        app.include_router(router)
    app.router.routes.extend(mcp.routes)
    errors.install(app, [*(route for router in doors for route in router.routes), *mcp.routes])
    # The last added is the outermost: every answer carries a request id, the refused ones too.
    uploads = {documents.PATH: settings.max_upload_bytes + documents.FORM_BYTES}
    app.add_middleware(IdempotencyMiddleware, store=lambda: app.state.stepgate.idempotency)
    app.add_middleware(BodyLimitMiddleware, max_bytes=settings.max_body_bytes, uploads=uploads)
    app.add_middleware(RequestIdMiddleware)
    if settings.metrics:
        app.add_middleware(MetricsMiddleware, metrics=lambda: app.state.stepgate.metrics)
    return app
