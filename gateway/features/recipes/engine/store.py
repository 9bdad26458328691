"""`RecipeStore`: the recipes of each owner. A recipe is staged until a person applies it.

Both versions of a recipe stand in one row, so that each change is one statement: it happens or it does not.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Final

from pydantic import ValidationError

from agent.core.errors import ConflictError, NotFoundError, StoreError
from agent.core.surrogates import to_storable_text
from agent.core.value_faults import describe_first_fault
from agent.storage.sql import SqlClient
from gateway.features.recipes.engine.model import Recipe, RecipeSet, StoredRecipe, compute_version, make_storable
from gateway.features.recipes.engine.renaming import rename_parameters

CACHE_SECONDS: Final = 1.0
"""How long a process may miss a change that another process made."""
MAX_RECIPES: Final = 200
"""Recipes of one owner. All of them are in the planner's catalogue."""
MAX_CACHED_OWNERS: Final = 1_000
_COLUMNS = "name, staged, applied, created, updated"


class RecipeStore:
    """The recipes by owner and name. Every method raises `StoreError`. Those of another owner count as absent."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock
        self._cached: dict[str, tuple[float, RecipeSet]] = {}

    async def list_applied(self, owner: str) -> RecipeSet:
        """The recipes in use, in order of name. Read from the store at most once a second."""
        known = self._cached.get(owner)
        if known is not None and monotonic() - known[0] < CACHE_SECONDS:
            return known[1]
        rows = await self._statements.read(
            "SELECT applied FROM recipes WHERE owner = ? AND applied IS NOT NULL ORDER BY name", owner
        )
        texts = [str(row[0]) for row in rows]
        digest = hashlib.sha256("\n".join(texts).encode()).hexdigest() if texts else ""
        found = RecipeSet(tuple(map(_parse, texts)), digest)
        if len(self._cached) >= MAX_CACHED_OWNERS:
            self._cached.clear()
        self._cached[owner] = (monotonic(), found)
        return found

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
        """Returns what waits for a confirmation. Raises `NotFoundError`, and `ConflictError` if nothing does."""
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
            raise ConflictError(f"the recipe {name!r} was changed at the same moment; look at it again")
        staged = _parse(str(text))
        if version not in (None, compute_version(staged)):
            raise ConflictError(f"the recipe {name!r} was made anew since it was shown; look at it again")
        applied = rename_parameters(staged, rename) if rename else staged
        rows = await self._statements.write(
            "UPDATE recipes SET applied = ?, staged = NULL, updated = ? "
            "WHERE owner = ? AND name = ? AND staged = ? RETURNING name",
            applied.model_dump_json(), self._clock(), owner, name, text,
        )  # fmt: skip
        self._cached.pop(owner, None)
        if not rows:
            raise ConflictError(f"the recipe {name!r} was changed at the same moment; look at it again")
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
        self._cached.pop(owner, None)
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
