"""`RecipeStore`: the recipes of each owner. A recipe is staged until a person applies it.

Both versions of a recipe are in one row, so that each change is one statement: it happens or it does not.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from agent.core.errors import ConflictError, NotFoundError, StoreError
from agent.core.surrogates import to_storable_text
from agent.core.value_faults import describe_first_fault
from agent.storage.sql import MAX_CACHED_OWNERS, OwnedRows, Row, SqlClient
from gateway.features.recipes.engine.model import Recipe, RecipeSet, StoredRecipe, compute_version, make_storable
from gateway.features.recipes.engine.renaming import rename_parameters

CACHE_SECONDS: Final = 1.0
"""How long a process may miss a change that another process made."""
MAX_RECIPES: Final = 200
"""Recipes of one owner. All of them are in the planner's catalogue."""
_COLUMNS = "name, staged, applied, created, updated"


class RecipeStore:
    """The recipes by owner and name. Every method raises `StoreError`. Those of another owner count as absent."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock
        self._parsed: dict[str, tuple[Sequence[Row], RecipeSet]] = {}
        self.applied_rows: Final = OwnedRows(
            statements,
            "SELECT applied FROM recipes WHERE owner = ? AND applied IS NOT NULL ORDER BY name",
            cache_seconds=CACHE_SECONDS,
        )
        """The rows of the recipes in use."""

    async def list_applied(self, owner: str) -> RecipeSet:
        """The recipes in use, in order of name. Read from the store at most once a second."""
        return self.parse_applied(owner, await self.applied_rows.read(owner))

    def parse_applied(self, owner: str, rows: Sequence[Row]) -> RecipeSet:
        """The recipes of an owner's `applied_rows`. Raises `StoreError`."""
        parsed = self._parsed.get(owner)
        if parsed is not None and parsed[0] is rows:  # while the rows are cached, their recipes are
            return parsed[1]
        texts = [str(row[0]) for row in rows]
        digest = hashlib.sha256("\n".join(texts).encode()).hexdigest() if texts else ""
        recipes = RecipeSet(tuple(map(_parse, texts)), digest)
        if len(self._parsed) >= MAX_CACHED_OWNERS:
            self._parsed.clear()
        self._parsed[owner] = (rows, recipes)
        return recipes

    async def list_all(self, owner: str) -> list[StoredRecipe]:
        """All recipes in order of name, staged ones included."""
        rows = await self._statements.read(f"SELECT {_COLUMNS} FROM recipes WHERE owner = ? ORDER BY name", owner)  # noqa: S608 - constants only
        return [_parse_row(row) for row in rows]

    async def get(self, owner: str, name: str) -> StoredRecipe:
        """A recipe. Raises `NotFoundError`."""
        rows = await self._statements.read(
            f"SELECT {_COLUMNS} FROM recipes WHERE owner = ? AND name = ?",  # noqa: S608 - constants only
            owner, to_storable_text(name),
        )  # fmt: skip
        if not rows:
            raise _make_unknown_error(name)
        return _parse_row(rows[0])

    async def get_staged(self, owner: str, name: str) -> Recipe:
        """The version that waits for a confirmation. Raises `NotFoundError`, and `ConflictError` if nothing does."""
        staged = (await self.get(owner, name)).staged
        if staged is None:
            raise ConflictError(f"the recipe {name!r} has nothing to confirm: it is in use as it is")
        return staged

    async def stage(self, owner: str, recipe: Recipe) -> StoredRecipe:
        """Stores a recipe to be confirmed; one in use stays in use. Raises `ConflictError` if there are too many."""
        now, text = self._clock(), make_storable(recipe).model_dump_json()
        await self._statements.write(
            "INSERT INTO recipes (owner, name, staged, applied, created, updated) "
            "SELECT ?, ?, ?, NULL, ?, ? WHERE (SELECT count(*) FROM recipes WHERE owner = ? AND name <> ?) < ? "
            "ON CONFLICT (owner, name) DO UPDATE SET staged = excluded.staged, updated = excluded.updated",
            owner, recipe.name, text, now, now, owner, recipe.name, MAX_RECIPES,
        )  # fmt: skip
        try:
            return await self.get(owner, recipe.name)
        except NotFoundError:
            raise ConflictError(f"there are {MAX_RECIPES} recipes; remove one first") from None

    async def apply(
        self, owner: str, name: str, *, version: str | None = None, rename: Mapping[str, str] | None = None
    ) -> Recipe:
        """Takes the staged recipe into use, with parameters under the new names of `rename`.

        Raises `NotFoundError`, `ConflictError` if none is staged or it is not the `version` that was shown, and
        `BadRequestError` for names that cannot be given.
        """
        await self.get_staged(owner, name)
        ((text,),) = await self._statements.read(
            "SELECT staged FROM recipes WHERE owner = ? AND name = ?", owner, name
        ) or [(None,)]
        if text is None:
            raise ConflictError(f"the recipe {name!r} was changed at the same time; read it again")
        staged = _parse(str(text))
        if version not in (None, compute_version(staged)):
            raise ConflictError(f"the recipe {name!r} was saved again since it was shown; read it again")
        applied = rename_parameters(staged, rename) if rename else staged
        rows = await self._statements.write(
            "UPDATE recipes SET applied = ?, staged = NULL, updated = ? "
            "WHERE owner = ? AND name = ? AND staged = ? RETURNING name",
            applied.model_dump_json(), self._clock(), owner, name, text,
        )  # fmt: skip
        self.applied_rows.forget(owner)
        if not rows:
            raise ConflictError(f"the recipe {name!r} was changed at the same time; read it again")
        return applied

    async def discard(self, owner: str, name: str) -> None:
        """Removes what is staged. A recipe that was never applied is gone. Raises `NotFoundError`, `ConflictError`."""
        if (await self.get(owner, name)).staged is None:
            raise ConflictError(f"the recipe {name!r} has nothing to discard: it is in use as it is")
        await self._statements.write(
            "UPDATE recipes SET staged = NULL, updated = ? WHERE owner = ? AND name = ? AND applied IS NOT NULL",
            self._clock(), owner, name,
        )  # fmt: skip
        await self._statements.write(
            "DELETE FROM recipes WHERE owner = ? AND name = ? AND applied IS NULL", owner, name
        )

    async def remove(self, owner: str, name: str) -> None:
        """Removes a recipe with what is staged of it. Raises `NotFoundError`."""
        rows = await self._statements.write(
            "DELETE FROM recipes WHERE owner = ? AND name = ? RETURNING name", owner, to_storable_text(name)
        )
        self.applied_rows.forget(owner)
        if not rows:
            raise _make_unknown_error(name)


def _make_unknown_error(name: str) -> NotFoundError:
    return NotFoundError(f"there is no recipe {name[:100]!r}; `stepgate recipes list` or GET /v1/recipes shows them")


def _parse(text: str) -> Recipe:
    try:
        return Recipe.model_validate_json(text)
    except ValidationError as error:
        raise StoreError(f"a stored recipe cannot be read: {describe_first_fault(error)}", agent_id="store") from error


def _parse_row(row: Sequence[Any]) -> StoredRecipe:
    name, staged, applied, created, updated = row
    return StoredRecipe(
        name=name,
        staged=_parse(staged) if staged is not None else None,
        applied=_parse(applied) if applied is not None else None,
        created=float(created),
        updated=float(updated),
    )
