"""`/v1/studio/prompts`, `/v1/studio/graph`, `/v1/studio/entities`, `/v1/studio/relationship`, `/v1/studio/secrets`: the
prompt library, the graph of what there is, and the names of secrets.
"""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from agent.core.errors import BadRequestError, NotFoundError, ToolInputError
from agent.core.models import DeferredModel
from gateway.access.dependencies import CurrentCaller, require_scope, require_tool
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute
from gateway.doors.strict_body import StrictBody
from gateway.features.studio.doors.rooms import to_editor
from gateway.features.studio.engine.entity_graph import Entity, EntityGraph, EntityType
from gateway.features.studio.parts import get_studio
from gateway.features.studio.prompt_forms import PromptSaveBody, PromptVersion, to_change
from gateway.features.studio.room_forms import RoomDetail, to_detail
from gateway.features.studio.tools import (
    EntityDetailsOutput,
    EntityItem,
    ExplainRelationshipOutput,
    LinkItem,
    SecretItem,
    describe_entity,
    explain_relationship,
    require_entity,
    to_secret_item,
)

router = APIRouter(tags=["studio"], route_class=JsonRoute)

_AGENT = [require_scope("agent")]
_ADMIN = [require_scope("admin")]


# Here, because another door has a `PromptItem` too: the OpenAPI document then names both with their modules.
class PromptItem(PromptVersion):
    """A version of a prompt."""


class PromptItems(DeferredModel):
    """Prompts, in order of name; versions of one prompt, newest first."""

    data: list[PromptItem]


class PromptApplyBody(StrictBody):
    """The room whose `system_prompt` the prompt becomes."""

    room: str
    version: int | None = Field(default=None, ge=1, description="of the prompt; unset: the newest")
    room_version: str | None = Field(
        default=None, description="the room's version that was read; 409 if it has changed"
    )


class GraphBody(DeferredModel):
    """What the caller sees of this gateway: entities by id, and their links."""

    entities: list[EntityItem]
    links: list[LinkItem]


class EntityItems(DeferredModel):
    """Entities that match, the best first."""

    data: list[EntityItem]


class SecretItems(DeferredModel):
    """Names of secrets, and whether they are configured."""

    data: list[SecretItem]


@router.get("/v1/studio/prompts", responses=ERRORS, dependencies=[*_AGENT, require_tool("prompts_list")])
async def list_prompts(stepgate: Gateway, caller: CurrentCaller) -> PromptItems:
    """List the caller's prompts, the newest version of each."""
    return PromptItems(data=PromptItem.from_records(await get_studio(stepgate).prompts.list_prompts(caller.owner)))


@router.get("/v1/studio/prompts/{name}", responses=ERRORS, dependencies=[*_AGENT, require_tool("prompt_show")])
async def get_prompt(
    name: str, stepgate: Gateway, caller: CurrentCaller, version: Annotated[int | None, Query(ge=1)] = None
) -> PromptItem:
    """Return a version of a prompt, the newest one by default."""
    return PromptItem.model_validate(await get_studio(stepgate).prompts.get_prompt(caller.owner, name, version))


@router.get("/v1/studio/prompts/{name}/versions", responses=ERRORS, dependencies=[*_AGENT, require_tool("prompt_show")])
async def list_prompt_versions(name: str, stepgate: Gateway, caller: CurrentCaller) -> PromptItems:
    """List the versions of a prompt, newest first."""
    return PromptItems(
        data=PromptItem.from_records(await get_studio(stepgate).prompts.list_versions(caller.owner, name))
    )


@router.put("/v1/studio/prompts/{name}", responses=ERRORS, dependencies=[*_AGENT, require_tool("prompt_save")])
async def save_prompt(name: str, body: PromptSaveBody, stepgate: Gateway, caller: CurrentCaller) -> PromptItem:
    """Save a prompt, as a new version if there is one of this name."""
    saved = await get_studio(stepgate).prompts.save_prompt(
        caller.owner, name, to_change(body), by=caller.name, version=body.version
    )
    return PromptItem.model_validate(saved)


@router.delete(
    "/v1/studio/prompts/{name}",
    status_code=204,
    responses=ERRORS,
    dependencies=[*_AGENT, require_tool("prompt_remove")],
)
async def remove_prompt(name: str, stepgate: Gateway, caller: CurrentCaller) -> None:
    """Remove a prompt with its versions. Rooms that use its text keep it."""
    await get_studio(stepgate).prompts.remove_prompt(caller.owner, name, by=caller.name)


@router.post(
    "/v1/studio/prompts/{name}/apply",
    responses=ERRORS,
    dependencies=[require_scope("rooms"), require_tool("prompt_apply")],
)
async def apply_prompt(name: str, body: PromptApplyBody, stepgate: Gateway, caller: CurrentCaller) -> RoomDetail:
    """Make a prompt the system prompt of a managed room."""
    prompt = await get_studio(stepgate).prompts.get_prompt(caller.owner, name, body.version)
    changes, editor = prompt.room_fields, to_editor(stepgate, caller)
    edited = await get_studio(stepgate).room_editor.edit_room(body.room, changes, editor, version=body.room_version)
    return to_detail(edited)


@router.get("/v1/studio/graph", responses=ERRORS, dependencies=[*_AGENT, require_tool("search_entities")])
async def get_graph(stepgate: Gateway, caller: CurrentCaller) -> GraphBody:
    """Return what the caller sees: rooms, tools, skills, files, servers, collections, documents, prompts, links."""
    graph = await get_studio(stepgate).graphs.get_graph(caller.owner)
    return GraphBody(
        entities=EntityItem.from_records(graph.entities.values()),
        links=LinkItem.from_records(graph.links),
    )


@router.get("/v1/studio/entities", responses=ERRORS, dependencies=[*_AGENT, require_tool("search_entities")])
async def search_entities(
    stepgate: Gateway,
    caller: CurrentCaller,
    query: Annotated[str, Query(max_length=500, description="words of a name or description; empty lists all")] = "",
    entity_type: Annotated[EntityType | None, Query(description="only entities of this type")] = None,
    earlier_type: Annotated[EntityType | None, Query(alias="type", deprecated=True, description="entity_type")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
) -> EntityItems:
    """Find rooms, tools, skills, files, MCP servers, collections, documents and prompts by words, the best first."""
    graph = await get_studio(stepgate).graphs.get_graph(caller.owner)
    return EntityItems(data=EntityItem.from_records(graph.search(query, entity_type or earlier_type, limit)))


@router.get(
    "/v1/studio/entities/{entity_id:path}", responses=ERRORS, dependencies=[*_AGENT, require_tool("get_entity_details")]
)
async def get_entity(entity_id: str, stepgate: Gateway, caller: CurrentCaller) -> EntityDetailsOutput:
    """Return an entity with its links: `room:support-team`, or a name that only one entity has."""
    graph = await get_studio(stepgate).graphs.get_graph(caller.owner)
    return describe_entity(graph, _require_entity(graph, entity_id))


@router.get("/v1/studio/relationship", responses=ERRORS, dependencies=[*_AGENT, require_tool("explain_relationship")])
async def get_relationship(
    stepgate: Gateway,
    caller: CurrentCaller,
    entity_a: Annotated[str, Query(max_length=300, description="an id such as room:support, or a name")] = "",
    entity_b: Annotated[str, Query(max_length=300, description="the other one")] = "",
    a: Annotated[str, Query(deprecated=True, description="entity_a")] = "",
    b: Annotated[str, Query(deprecated=True, description="entity_b")] = "",
) -> ExplainRelationshipOutput:
    """Return the shortest path between two entities, in words too; an empty one if they are not related."""
    first, second = entity_a or a, entity_b or b
    for name, value in (("entity_a", first), ("entity_b", second)):
        if not value:
            raise BadRequestError(f"Missing required parameter: {name!r}.", param=name)
    graph = await get_studio(stepgate).graphs.get_graph(caller.owner)
    return explain_relationship(graph, _require_entity(graph, first), _require_entity(graph, second))


def _require_entity(graph: EntityGraph, name: str) -> Entity:
    """The entity. Raises `NotFoundError` with those that may be meant."""
    try:
        return require_entity(graph, name)
    except ToolInputError as error:
        raise NotFoundError(error.message, stage=error.details.get("stage")) from error


@router.get("/v1/studio/secrets", responses=ERRORS, dependencies=[*_ADMIN, require_tool("list_secrets")])
async def list_secrets(stepgate: Gateway, caller: CurrentCaller) -> SecretItems:
    """List the names of the secrets that the caller may use, and whether they are configured; never a value."""
    secret_names = await asyncio.to_thread(get_studio(stepgate).secrets.list_secrets, caller.owner)
    return SecretItems(data=[to_secret_item(secret) for secret in secret_names])
