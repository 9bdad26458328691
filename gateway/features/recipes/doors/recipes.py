"""`/v1/recipes` and `POST /v1/runs/{id}/recipe`: runs that went well, saved as skills with parameters."""

from fastapi import APIRouter, Request
from pydantic import Field

from agent.core.models import DeferredModel
from gateway.access.dependencies import CurrentCaller, require_scope, require_tool
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.http_runs import accept_run
from gateway.doors.json_body import JsonRoute
from gateway.doors.strict_body import StrictBody
from gateway.features.recipes.forms import RecipeDetail, RecipeItem, SaveBody, to_detail, to_item, to_options
from gateway.features.recipes.parts import get_recipes
from gateway.features.recipes.saved_runs import build_save_call, get_saved_recipe

router = APIRouter(tags=["recipes"], route_class=JsonRoute, dependencies=[require_scope("agent")])


class RecipeList(DeferredModel):
    """The recipes of the caller, in order of name."""

    data: list[RecipeItem]


class ApplyBody(StrictBody):
    """What is confirmed."""

    version: str | None = Field(default=None, max_length=100, description="the one that was shown; 409 for another one")
    rename: dict[str, str] = Field(default={}, description="new names of parameters, by the names that were shown")


@router.post("/v1/runs/{run_id}/recipe", status_code=201, responses=ERRORS, dependencies=[require_tool("recipe_save")])
async def save_run(
    run_id: str, body: SaveBody, http: Request, stepgate: Gateway, caller: CurrentCaller
) -> RecipeDetail:
    """Make a recipe of a run that succeeded, try it, and stage it until it is applied."""
    maker, options = get_recipes(stepgate), to_options(body)
    await maker.check_request(run_id, caller.owner, options.name)
    accepted = await accept_run(http, stepgate, caller, build_save_call(run_id, options))
    await stepgate.service.wait_until_end(accepted.run_id, owner=caller.owner, waits=False)
    return to_detail(await get_saved_recipe(stepgate.service, maker.store, accepted.run_id, caller.owner))


@router.get("/v1/recipes", responses=ERRORS, dependencies=[require_tool("recipes_list")])
async def list_recipes(stepgate: Gateway, caller: CurrentCaller) -> RecipeList:
    """List the recipes."""
    stored = await get_recipes(stepgate).store.list_all(caller.owner)
    return RecipeList(data=[to_item(one) for one in stored])


@router.get("/v1/recipes/{name}", responses=ERRORS, dependencies=[require_tool("recipes_list")])
async def get_recipe(name: str, stepgate: Gateway, caller: CurrentCaller) -> RecipeDetail:
    """Return a recipe."""
    return to_detail(await get_recipes(stepgate).store.get(caller.owner, name))


@router.post(
    "/v1/recipes/{name}/apply", responses=ERRORS, dependencies=[require_scope("approve"), require_tool("recipe_apply")]
)
async def apply_recipe(name: str, body: ApplyBody, stepgate: Gateway, caller: CurrentCaller) -> RecipeDetail:
    """Confirm a staged recipe. From now on `/name` calls it."""
    await get_recipes(stepgate).store.apply(caller.owner, name, version=body.version, rename=body.rename)
    return to_detail(await get_recipes(stepgate).store.get(caller.owner, name))


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
