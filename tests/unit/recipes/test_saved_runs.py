"""The recipe that the run of `recipe_save` has made, or why it made none."""

from typing import Any, cast

import pytest

from agent.core.errors import ConflictError
from agent.core.events import Event, EventBody, RunCreated, ToolReturned
from agent.core.models import AgentRequest, Room
from agent.runs.service import AgentService
from gateway.features.recipes.engine import RecipeStore, StoredRecipe
from gateway.features.recipes.saved_runs import get_saved_recipe
from tests.unit.recipes.test_forms import make_recipe

STORED = StoredRecipe(name="sum", staged=make_recipe(), created=0, updated=0)


class Service:
    """The log of one run, and a long result that is stored beside it."""

    def __init__(self, *bodies: EventBody) -> None:
        self._events = [Event("run_s", seq, 1, 0.0, body) for seq, body in enumerate(bodies, 1)]

    async def read_events(self, run_id: str, *, owner: str) -> list[Event]:
        assert (run_id, owner) == ("run_s", "anna")
        return self._events

    async def get_blob_result(self, checksum: str) -> tuple[dict[str, object] | None, str]:
        assert checksum == "b1"
        return {"name": "sum"}, ""


class Store:
    async def get(self, owner: str, name: str) -> StoredRecipe:
        assert (owner, name) == ("anna", "sum")
        return STORED


async def read(*bodies: EventBody) -> StoredRecipe:
    created = RunCreated(request=AgentRequest(prompt="save"), room=Room(id="stepgate"), owner="anna")
    service = cast("AgentService[Any]", Service(created, *bodies))
    return await get_saved_recipe(service, cast("RecipeStore", Store()), "run_s", "anna")


@pytest.mark.parametrize(
    "result", [{"output": {"name": "sum"}}, {"output": None, "blob": "b1"}], ids=["in the log", "long: beside it"]
)
async def test_the_recipe_is_found_wherever_the_result_is_stored(result: dict[str, Any]) -> None:
    assert await read(ToolReturned(call_id="c1", tool="recipe_save", **result)) is STORED


async def test_a_refusal_of_the_tool_is_the_reason() -> None:
    refused = ToolReturned(call_id="c1", tool="recipe_save", error_code="err_conflict", error="it has no steps")
    with pytest.raises(ConflictError, match=r"^it has no steps$") as error:
        await read(refused)
    assert error.value.details["run_id"] == "run_s"
    with pytest.raises(ConflictError):
        await read()
