"""The server `kitchen`: recipes, the pantry, the shopping list and the meal plan of a household."""

from datetime import date, timedelta
from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import EFFECT, READ, WRITE, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Day, Inputs

MAX_PLAN_DAYS = 14
Unit = Literal["g", "ml", "piece"]
Meal = Literal["lunch", "dinner"]


class RecipeFilter(Inputs):
    """Which recipes; what is left out does not matter."""

    title_contains: str | None = None
    tag: Literal["vegan", "vegetarian", "fish", "meat", "dessert", "soup"] | None = None
    max_minutes: int | None = None
    with_ingredient: str | None = None


class Item(Inputs):
    """Something to buy."""

    name: str = Field(description="in the singular, such as onion")
    quantity: float = Field(gt=0)
    unit: Unit


def build_kitchen(file: StateFile) -> MCPServer:
    """Builds the server of recipes and shopping."""
    server = MCPServer("kitchen")
    _add_recipes(server, file)
    _add_stores(server, file)
    _add_plan(server, file)
    return server


def _add_recipes(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of recipes."""

    @server.tool(annotations=READ)
    def recipes_search(
        filter: RecipeFilter | None = None,  # noqa: A002 - as many public servers call it
    ) -> list[dict[str, Any]]:
        """Search recipes: id, title, tags, minutes and servings. Ingredients are returned by recipes_get."""
        where = filter or RecipeFilter()
        return [
            {"recipe_id": key, **{name: value for name, value in recipe.items() if name != "ingredients"}}
            for key, recipe in file.load()["kitchen"]["recipes"].items()
            if _matches(recipe, where)
        ]

    @server.tool(annotations=READ)
    def recipes_get(recipe_id: str, servings: int | None = None) -> dict[str, Any]:
        """Get a recipe with its ingredients, for the given number of servings or as it is written."""
        recipe = find_record(file.load()["kitchen"]["recipes"], recipe_id, "recipe")
        factor = (servings or recipe["servings"]) / recipe["servings"]
        ingredients = [{**one, "quantity": round(one["quantity"] * factor, 1)} for one in recipe["ingredients"]]
        return {
            **recipe, "recipe_id": recipe_id, "servings": servings or recipe["servings"], "ingredients": ingredients,
        }  # fmt: skip


def _add_stores(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of the pantry and the shopping list."""

    @server.tool(annotations=READ)
    def pantry_list(
        place: Literal["shelf", "fridge", "freezer"] | None = None, best_before_until: Day | None = None
    ) -> list[dict[str, Any]]:
        """List what is in the house, with quantity, place and best-before date."""
        return [
            {"name": name, **item}
            for name, item in file.load()["kitchen"]["pantry"].items()
            if place in (None, item["place"]) and item["best_before"] <= (best_before_until or "9999")
        ]

    @server.tool(annotations=WRITE)
    def pantry_set(name: str, quantity: float = Field(ge=0)) -> str:
        """Set how much of something is in the house, in the unit that the pantry has for it."""
        with file.change() as state:
            item = find_record(state["kitchen"]["pantry"], name, "item in the pantry")
            item["quantity"] = quantity
        return f"{name}: {quantity:g} {item['unit']}"

    @server.tool(annotations=READ)
    def shopping_list() -> list[dict[str, Any]]:
        """List what has to be bought."""
        return [{"name": name, **item} for name, item in file.load()["kitchen"]["shopping"].items()]

    @server.tool(annotations=EFFECT)
    def shopping_add(items: list[Item]) -> str:
        """Add items to the shopping list. What is on it already gets the sum of both quantities."""
        with file.change() as state:
            shopping = state["kitchen"]["shopping"]
            for item in items:
                name = item.name.strip().casefold()
                entry = shopping.setdefault(name, {"quantity": 0, "unit": item.unit})
                if entry["unit"] != item.unit:
                    raise ToolError(f"{name} is on the list in {entry['unit']}; nothing was added")
                entry["quantity"] = round(entry["quantity"] + item.quantity, 1)
        return f"added: {', '.join(item.name for item in items)}"


def _add_plan(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of the meal plan."""

    @server.tool(annotations=READ)
    def plan_get(start: Day, days: int = Field(default=7, ge=1, le=MAX_PLAN_DAYS)) -> dict[str, dict[str, str]]:
        """Get the planned meals by day, with the titles of the recipes."""
        kitchen = file.load()["kitchen"]
        first = date.fromisoformat(start)
        wanted = [(first + timedelta(days=number)).isoformat() for number in range(days)]
        return {
            day: {meal: kitchen["recipes"][key]["title"] for meal, key in kitchen["plan"].get(day, {}).items()}
            for day in wanted
        }

    @server.tool(annotations=WRITE)
    def plan_set(day: Day, meal: Meal, recipe_id: str) -> str:
        """Plan a recipe for a meal of a day, in place of what was planned."""
        with file.change() as state:
            recipe = find_record(state["kitchen"]["recipes"], recipe_id, "recipe")
            state["kitchen"]["plan"].setdefault(day, {})[meal] = recipe_id
        return f"{meal} on {day}: {recipe['title']}"


def _matches(recipe: dict[str, Any], where: RecipeFilter) -> bool:
    return (
        (where.title_contains or "").casefold() in recipe["title"].casefold()
        and (where.tag is None or where.tag in recipe["tags"])
        and (where.max_minutes is None or recipe["minutes"] <= where.max_minutes)
        and any((where.with_ingredient or "").casefold() in one["name"] for one in recipe["ingredients"])
    )
