"""Which runs recipes need: those that a recipe was made from or tried with are not forgotten."""

import json
from collections.abc import Mapping

from agent.storage.feature_tables import FeatureRetention
from agent.storage.run_deletion import SqlCondition
from agent.storage.sql import SqlClient

_NAMED_IN_NEW_RECIPE = (
    "EXISTS (SELECT 1 FROM recipes WHERE updated >= ? "
    "AND (staged LIKE ? || runs.run_id || ? OR applied LIKE ? || runs.run_id || ?))"
)


async def list_needed_runs(statements: SqlClient) -> set[str]:
    """The runs that recipes name."""
    recipes = await statements.read("SELECT staged, applied FROM recipes")
    return {name for row in recipes for text in row if text for name in _list_runs(json.loads(text))}


def build_need_condition(since: float) -> SqlCondition:
    """The condition that a recipe which was changed since names the run."""
    name = ('%"', '"%')
    return SqlCondition(_NAMED_IN_NEW_RECIPE, (since, *name, *name))


def _list_runs(recipe: Mapping[str, object]) -> list[str]:
    """The runs that a recipe was made from and tried with."""
    trials = recipe.get("trials")
    tried = (
        [str(trial.get("run_id")) for trial in trials if isinstance(trial, dict)] if isinstance(trials, list) else []
    )
    return [str(recipe.get("from_run")), *tried]


RETENTION = FeatureRetention(list_needed_runs=list_needed_runs, build_need_condition=build_need_condition)
