"""The favourites: their store, and the tool that lists them."""

from collections.abc import Callable

from pydantic import BaseModel

from agent.storage.sql import SqlClient
from agent.tools import READ_ONLY, Tool, ToolContext, TypedTool
from gateway.feature_host import FeatureHost
from stepgate_poems.parts import get_poems


class Favourites:
    """The favourite poems by owner. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def add(self, owner: str, title: str) -> None:
        """Adds a poem; adding it again changes nothing."""
        await self._statements.write(
            "INSERT INTO poem_favourites (owner, title, added) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            owner, title, self._clock(),
        )  # fmt: skip

    async def list_titles(self, owner: str) -> list[str]:
        """The titles, oldest first."""
        rows = await self._statements.read(
            "SELECT title FROM poem_favourites WHERE owner = ? ORDER BY added, title", owner
        )
        return [str(row[0]) for row in rows]


class NoInput(BaseModel):
    """Nothing is needed."""


class Titles(BaseModel):
    """The titles of poems."""

    titles: list[str]


class FavouritePoemsTool(TypedTool[NoInput, Titles]):
    """Lists the caller's favourite poems."""

    name = "favourite_poems"
    description = "List the user's favourite poems."
    keywords = ("poem", "poems", "favourite")
    annotations = READ_ONLY

    def __init__(self, favourites: Favourites) -> None:
        super().__init__()
        self._favourites = favourites

    async def run(self, args: NoInput, context: ToolContext) -> Titles:
        """Reads the store."""
        return Titles(titles=await self._favourites.list_titles(context.owner))

    def format_text(self, output: Titles) -> str:
        """One title a line."""
        return "\n".join(output.titles) or "There are no favourite poems."


def build(host: FeatureHost) -> Favourites:
    """What the door, the tool and the command share."""
    return Favourites(host.statements, host.context.store.clock)


def list_tools(host: FeatureHost) -> list[Tool]:
    """The tool."""
    return [FavouritePoemsTool(get_poems(host))]
