"""Saves a run as a recipe, for the route and the command: the tool `recipe_save` does it, in a run of its own."""

from typing import Any

from agent.core.errors import ConflictError
from agent.core.events import ToolReturned
from agent.core.models import AgentRequest, JsonObject
from agent.runs.intake_requests import HiddenRequest
from agent.runs.response import build_response
from agent.runs.service import AgentService
from gateway.features.recipes.engine import RecipeStore, SaveOptions, StoredRecipe

SAVE_TOOL = "recipe_save"


def build_save_call(run_id: str, options: SaveOptions) -> HiddenRequest:
    """The request that calls the tool."""
    args: JsonObject = {"run_id": run_id, **options.model_dump()}
    return HiddenRequest(AgentRequest(metadata={"tool_calls": [{"tool": SAVE_TOOL, "args": args}]}))


async def get_saved_recipe(
    service: AgentService[Any], store: RecipeStore, save_run_id: str, owner: str
) -> StoredRecipe:
    """The recipe that the tool has staged in this run, which is over. Raises `ConflictError` with its error."""
    events = await service.read_events(save_run_id, owner=owner)
    returned = next((event.body for event in reversed(events) if isinstance(event.body, ToolReturned)), None)
    if returned is None or returned.error_code is not None:
        reason = returned.error if returned is not None else build_response(events).response
        raise ConflictError(reason or "no recipe was made", agent_id="recipes", run_id=save_run_id)
    output: object = returned.output if returned.blob is None else (await service.get_blob_result(returned.blob))[0]
    name = output.get("name") if isinstance(output, dict) else None
    return await store.get(owner, str(name))
