"""`/v1/recipes` and `POST /v1/runs/{id}/recipe`: runs that went well, saved as skills with parameters."""

from datetime import UTC, datetime

from fastapi import APIRouter, Request
from pydantic import Field

from agent.core.errors import ConflictError
from agent.core.events import ToolReturned
from agent.core.models import AgentRequest, DeferredModel, JsonObject, PlanStep
from agent.runs.response import build_response
from agent.runs.run_intake import HiddenRequest
from gateway.auth.dependencies import CurrentCaller, require_scope, require_tool
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute, StrictBody
from gateway.doors.run_intake import accept_run
from gateway.features.recipes.engine import Recipe, StoredRecipe
from gateway.features.recipes.engine.card import render_files
from gateway.features.recipes.parts import get_recipes
from gateway.features.recipes.tools.recipes import SAVE_TOOL, RecipeOutput, get_state, to_output

router = APIRouter(tags=["recipes"], route_class=JsonRoute, dependencies=[require_scope("agent")])


class RecipeItem(RecipeOutput):
    """A recipe as lists show it: what is staged, else what is in use."""

    is_applied: bool = Field(description="whether it can be called; of a staged recipe, an earlier version of it")
    from_run: str
    created_at: datetime
    updated_at: datetime


class RecipeDetail(RecipeItem):
    """A recipe with its steps, and the files of its skill folder by name."""

    request: str
    steps: list[PlanStep]
    files: dict[str, str]


class RecipeList(DeferredModel):
    """The recipes of the caller, in order of name."""

    data: list[RecipeItem]


class SaveBody(StrictBody):
    """How to save a run. Everything is optional: the name, the description and the parameters are found."""

    name: str = Field(default="", max_length=500, description="1 to 64 lowercase letters, digits and single hyphens")
    description: str = Field(default="", max_length=1024)
    try_values: JsonObject = Field(default={}, description="other values of parameters to try it with")


class ApplyBody(StrictBody):
    """What is confirmed."""

    version: str | None = Field(default=None, max_length=100, description="the one that was shown; 409 for another one")
    rename: dict[str, str] = Field(default={}, description="new names of parameters, by the names that were shown")


@router.post("/v1/runs/{run_id}/recipe", status_code=201, responses=ERRORS, dependencies=[require_tool("recipe_save")])
async def save_run(
    run_id: str, body: SaveBody, http: Request, stepgate: Gateway, caller: CurrentCaller
) -> RecipeDetail:
    """Make a recipe of a run that succeeded, try it, and stage it until it is applied."""
    await get_recipes(stepgate).check_request(run_id, caller.owner, body.name)
    args: JsonObject = {
        "run_id": run_id,
        "name": body.name,
        "description": body.description,
        "try_values": body.try_values,
    }
    call = HiddenRequest(AgentRequest(metadata={"tool_calls": [{"tool": SAVE_TOOL, "args": args}]}))
    accepted = await accept_run(http, stepgate, caller, call)
    await stepgate.service.wait_until_end(accepted.run_id, owner=caller.owner, waits=False)
    events = await stepgate.service.read_events(accepted.run_id, owner=caller.owner)
    returned = next((event.body for event in reversed(events) if isinstance(event.body, ToolReturned)), None)
    if returned is None or returned.error_code is not None:
        reason = returned.error if returned is not None else build_response(events).response
        raise ConflictError(reason or "no recipe was made", agent_id="recipes", run_id=accepted.run_id)
    output: dict[str, object] | None = dict(returned.output) if isinstance(returned.output, dict) else None
    if returned.blob is not None:
        output = (await stepgate.service.get_blob_result(returned.blob))[0]
    return _to_detail(await get_recipes(stepgate).store.get(caller.owner, str((output or {}).get("name"))))


@router.get("/v1/recipes", responses=ERRORS, dependencies=[require_tool("recipes_list")])
async def list_recipes(stepgate: Gateway, caller: CurrentCaller) -> RecipeList:
    """List the recipes."""
    stored = await get_recipes(stepgate).store.list_all(caller.owner)
    return RecipeList(data=[RecipeItem(**_describe(one)) for one in stored])


@router.get("/v1/recipes/{name}", responses=ERRORS, dependencies=[require_tool("recipes_list")])
async def get_recipe(name: str, stepgate: Gateway, caller: CurrentCaller) -> RecipeDetail:
    """Return a recipe."""
    return _to_detail(await get_recipes(stepgate).store.get(caller.owner, name))


@router.post(
    "/v1/recipes/{name}/apply", responses=ERRORS, dependencies=[require_scope("approve"), require_tool("recipe_apply")]
)
async def apply_recipe(name: str, body: ApplyBody, stepgate: Gateway, caller: CurrentCaller) -> RecipeDetail:
    """Confirm a staged recipe. From now on `/name` calls it."""
    await get_recipes(stepgate).store.apply(caller.owner, name, version=body.version, rename=body.rename)
    return _to_detail(await get_recipes(stepgate).store.get(caller.owner, name))


@router.post(
    "/v1/recipes/{name}/discard", status_code=204, responses=ERRORS, dependencies=[require_tool("recipe_remove")]
)
async def discard_recipe(name: str, stepgate: Gateway, caller: CurrentCaller) -> None:
    """Discard what is staged. An earlier version stays in use."""
    await get_recipes(stepgate).store.discard(caller.owner, name)


@router.delete("/v1/recipes/{name}", status_code=204, responses=ERRORS, dependencies=[require_tool("recipe_remove")])
async def remove_recipe(name: str, stepgate: Gateway, caller: CurrentCaller) -> None:
    """Remove a recipe, with what is staged of it."""
    await get_recipes(stepgate).store.remove(caller.owner, name)


def _to_detail(stored: StoredRecipe) -> RecipeDetail:
    recipe: Recipe = stored.shown
    files = dict(render_files(recipe))
    return RecipeDetail(**_describe(stored), request=recipe.request, steps=list(recipe.steps), files=files)


def _describe(stored: StoredRecipe) -> dict[str, object]:
    recipe = stored.shown
    return {
        **to_output(recipe, get_state(stored)).model_dump(),
        "is_applied": stored.applied is not None,
        "from_run": recipe.from_run,
        "created_at": datetime.fromtimestamp(stored.created, UTC),
        "updated_at": datetime.fromtimestamp(stored.updated, UTC),
    }
