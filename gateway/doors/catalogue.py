"""`/`, `/v1/skills`, `/v1/tools`, `/health`, `/ready`, `/metrics`: what the gateway offers, and whether it works."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BeforeValidator, Field
from starlette.routing import Route

from agent.core.errors import NotFoundError
from agent.core.models import DeferredModel, Effect, JsonObject
from agent.core.record_item import RecordItem
from gateway.access.dependencies import CurrentCaller, may_see_details, require_scope
from gateway.doors.agent import ERRORS
from gateway.doors.deferred_route import DeferredRoute, OpenRoute
from gateway.doors.dependencies import Gateway
from gateway.readiness import check_readiness

router = APIRouter(tags=["gateway"], route_class=DeferredRoute)
probes = APIRouter(tags=["gateway"], route_class=OpenRoute)


class SkillItem(RecordItem):
    """A skill."""

    name: str
    description: str
    origin: str
    allowed_tools: list[str]
    license: str
    compatibility: str


class SkillItems(DeferredModel):
    """Every skill, and the problems found while loading them."""

    data: list[SkillItem]
    diagnostics: list[str]


class ToolItem(RecordItem):
    """A tool with MCP's annotations."""

    name: str
    description: str
    effect: Effect
    annotations: Annotated[JsonObject, BeforeValidator(lambda annotations: annotations.model_dump(by_alias=True))]
    input_schema: JsonObject
    output_schema: JsonObject | None
    origin: str


class ToolItems(DeferredModel):
    """Every tool."""

    data: list[ToolItem]


class Component(DeferredModel):
    """One component of the gateway."""

    ok: bool
    detail: str


class Readiness(DeferredModel):
    """Whether requests can be served. `degraded` names the components that do not work: requests that need them are
    refused, or carried out without them.
    """

    ready: bool
    degraded: list[str]
    components: dict[str, Component]


class Health(DeferredModel):
    """The process is alive."""

    status: str = "ok"
    service: str = "stepgate"


_DOORS = {
    "openai": "/v1/chat/completions",
    "models": "/v1/models",
    "agent": "/v1/agent",
    "runs": "/v1/runs",
    "tasks": "/tasks",
    "mcp": "/mcp",
    "rooms": "/v1/rooms",
    "skills": "/v1/skills",
    "tools": "/v1/tools",
    "health": "/health",
    "ready": "/ready",
    "openapi": "/openapi.json",
}


class Pointer(DeferredModel):
    """The gateway's name, version and doors."""

    name: str = "Stepgate"
    version: str
    doors: dict[str, str] = Field(description="paths by name; those of features that are off are left out")


_NOT_READY: dict[int | str, dict[str, Any]] = {503: {"model": Readiness}}


@probes.head("/", include_in_schema=False)
@probes.get("/")
async def get_root(http: Request) -> Pointer:
    """List the doors."""
    served = {route.path for route in http.app.routes if isinstance(route, Route)}
    return Pointer(version=http.app.version, doors={name: path for name, path in _DOORS.items() if path in served})


@router.get("/v1/skills", responses=ERRORS)
async def list_skills(stepgate: Gateway, caller: CurrentCaller) -> SkillItems:
    """List the skills."""
    items = SkillItem.from_records(stepgate.skills)
    # What is wrong with their files names folders of the machine.
    return SkillItems(data=items, diagnostics=list(stepgate.skills.diagnostics) if caller.has_scope("admin") else [])


@router.get("/v1/tools", responses=ERRORS)
async def list_tools(stepgate: Gateway, caller: CurrentCaller) -> ToolItems:
    """List the tools that the caller may use."""
    visible = [spec for spec in stepgate.registry.list_specs() if spec.is_visible_to(caller.owner)]
    return ToolItems(data=ToolItem.from_records(visible))


@probes.head("/health", include_in_schema=False)
@probes.get("/health")
@probes.api_route("/healthz", methods=["GET", "HEAD"], include_in_schema=False)
async def get_health() -> Health:
    """Report that the process is alive."""
    return Health()


@probes.get(
    "/metrics",
    response_class=Response,
    responses={
        **ERRORS,
        403: {**ERRORS["default"], "description": "The key lacks the scope `metrics`"},
        404: {**ERRORS["default"], "description": "AGENT_METRICS is off"},
    },
    dependencies=[require_scope("metrics")],
)
async def get_metrics(stepgate: Gateway) -> Response:
    """Return the metrics that Prometheus scrapes."""
    if not stepgate.settings.metrics:
        raise NotFoundError("metrics are turned off (AGENT_METRICS)")
    stepgate.metrics.live.set(stepgate.service.worker.live_count)
    if stepgate.dispatch.refresh_metrics is not None:
        await stepgate.dispatch.refresh_metrics()
    return Response(stepgate.metrics.render(), media_type=stepgate.metrics.content_type)


@probes.head("/ready", include_in_schema=False)
@probes.get("/ready", response_model=Readiness, responses=_NOT_READY)
@probes.api_route("/readyz", methods=["GET", "HEAD"], include_in_schema=False)
async def get_readiness(request: Request, stepgate: Gateway) -> JSONResponse:
    """Report whether runs can be stored and executed: 200 or 503.

    Models that are down are named but do not make the gateway unready: rules mode remains. Where keys are required,
    only a key with the scope `admin` gets the details.
    """
    shows_details = await may_see_details(request)
    status = await check_readiness(stepgate)
    serving = status["store"].ok and status["gateway"].ok
    body = Readiness(
        ready=serving,
        degraded=[name for name, item in status.items() if not item.ok],
        components={
            name: Component(ok=item.ok, detail=item.detail if shows_details else "") for name, item in status.items()
        },
    )
    return JSONResponse(body.model_dump(), 200 if serving else 503)
