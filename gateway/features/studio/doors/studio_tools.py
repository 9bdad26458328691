"""`/v1/studio/tools`: generated tools. Needs the scope `rooms`; a key sees and changes the tools of its owner."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from agent.core.errors import ConflictError
from agent.core.models import DeferredModel
from gateway.access.authentication import Caller
from gateway.access.dependencies import CurrentCaller, require_scope, require_tool
from gateway.bootstrap import Stepgate
from gateway.direct_model import DirectModel
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute
from gateway.doors.strict_body import StrictBody
from gateway.features.studio.engine.generated_tools.models import ToolVersion
from gateway.features.studio.parts import get_studio
from gateway.features.studio.tool_forms import (
    GenerateBody,
    RefineBody,
    ToolVersionDetail,
    ToolVersionItem,
    to_detail,
)

router = APIRouter(tags=["studio"], route_class=JsonRoute, dependencies=[require_scope("rooms")])

ToolName = Annotated[str, Path(max_length=200, description="the tool's name")]
_Version = Annotated[int | None, Query(ge=1, description="unset: the newest one")]


class ToolVersionItems(DeferredModel):
    """Versions of generated tools."""

    data: list[ToolVersionItem]


class DecisionBody(StrictBody):
    """Which version is decided about; `sha256` is what was reviewed: 409 if the version has another one."""

    version: int | None = Field(default=None, ge=1)
    sha256: str | None = Field(default=None, max_length=100)


class RestoreBody(StrictBody):
    """The version that is put into use again."""

    version: int = Field(ge=1)
    sha256: str | None = Field(default=None, max_length=100)


@router.get("/v1/studio/tools", responses=ERRORS, dependencies=[require_tool("tools_list")])
async def list_generated_tools(stepgate: Gateway, caller: CurrentCaller) -> ToolVersionItems:
    """List the generated tools, each with its newest version."""
    tools = await get_studio(stepgate).generated_tools.list_tools(caller.principal)
    return ToolVersionItems(data=ToolVersionItem.from_records(tools))


@router.post("/v1/studio/tools", status_code=201, responses=ERRORS, dependencies=[require_tool("tool_generate")])
async def generate_tool(body: GenerateBody, stepgate: Gateway, caller: CurrentCaller) -> ToolVersionDetail:
    """Make a tool: tests, code, checks and review by the model, tests in the sandbox. It is staged, not in use."""
    made = await get_studio(stepgate).generated_tools.generate(
        caller.principal, body.to_request(), model=build_direct_model(stepgate, caller)
    )
    return await _to_detail(stepgate, caller, made)


@router.get("/v1/studio/tools/{name}", responses=ERRORS, dependencies=[require_tool("tool_show")])
async def get_generated_tool(
    name: ToolName, stepgate: Gateway, caller: CurrentCaller, version: _Version = None
) -> ToolVersionDetail:
    """Return a version of a tool with its code, tests and review."""
    return await _to_detail(
        stepgate, caller, await get_studio(stepgate).generated_tools.get(caller.principal, name, version)
    )


@router.get("/v1/studio/tools/{name}/versions", responses=ERRORS, dependencies=[require_tool("tool_show")])
async def list_tool_versions(name: ToolName, stepgate: Gateway, caller: CurrentCaller) -> ToolVersionItems:
    """List the versions of a tool, the newest first."""
    versions = await get_studio(stepgate).generated_tools.list_versions(caller.principal, name)
    return ToolVersionItems(data=ToolVersionItem.from_records(versions))


@router.post("/v1/studio/tools/{name}/apply", responses=ERRORS, dependencies=[require_tool("tool_apply")])
async def apply_tool(name: ToolName, body: DecisionBody, stepgate: Gateway, caller: CurrentCaller) -> ToolVersionDetail:
    """Put a staged version into use."""
    tools = get_studio(stepgate).generated_tools
    applied = await tools.apply(caller.principal, name, version=body.version, sha256=body.sha256)
    return await _to_detail(stepgate, caller, applied)


@router.post("/v1/studio/tools/{name}/discard", responses=ERRORS, dependencies=[require_tool("tool_discard")])
async def discard_tool(
    name: ToolName, body: DecisionBody, stepgate: Gateway, caller: CurrentCaller
) -> ToolVersionDetail:
    """Discard a staged version."""
    discarded = await get_studio(stepgate).generated_tools.discard(caller.principal, name, version=body.version)
    return await _to_detail(stepgate, caller, discarded)


@router.post(
    "/v1/studio/tools/{name}/refine", status_code=201, responses=ERRORS, dependencies=[require_tool("tool_refine")]
)
async def refine_tool(name: ToolName, body: RefineBody, stepgate: Gateway, caller: CurrentCaller) -> ToolVersionDetail:
    """Make a changed version. It is staged; the version in use stays."""
    made = await get_studio(stepgate).generated_tools.refine(
        caller.principal, name, body.to_request(), model=build_direct_model(stepgate, caller)
    )
    return await _to_detail(stepgate, caller, made)


@router.post("/v1/studio/tools/{name}/restore", responses=ERRORS, dependencies=[require_tool("tool_restore")])
async def restore_tool(
    name: ToolName, body: RestoreBody, stepgate: Gateway, caller: CurrentCaller
) -> ToolVersionDetail:
    """Put a version into use again that was in use before."""
    tools = get_studio(stepgate).generated_tools
    restored = await tools.restore(caller.principal, name, body.version, sha256=body.sha256)
    return await _to_detail(stepgate, caller, restored)


@router.delete("/v1/studio/tools/{name}", status_code=204, responses=ERRORS, dependencies=[require_tool("tool_remove")])
async def remove_tool(name: ToolName, stepgate: Gateway, caller: CurrentCaller) -> None:
    """Delete a tool with all of its versions; 409 while rooms name it."""
    await get_studio(stepgate).generated_tools.remove(caller.principal, name)


def build_direct_model(stepgate: Stepgate, caller: Caller) -> DirectModel:
    """The model that works for this caller outside of a run, with the models of the default room.

    Raises `ConflictError` if none is configured.
    """
    if not stepgate.models.is_configured:
        message = "no model is configured, and a model writes the tools; `stepgate models use` connects one"
        raise ConflictError(message, agent_id="studio")
    settings = stepgate.settings
    return DirectModel(
        stepgate.models,
        stepgate.rooms.get(None, None),
        stepgate.quotas,
        caller.principal.key_id,
        settings.list_secrets(),
        settings.llm_base_url,
    )


async def _to_detail(stepgate: Stepgate, caller: Caller, version: ToolVersion) -> ToolVersionDetail:
    return await to_detail(get_studio(stepgate).generated_tools, caller.principal, version)
