"""The favourites: their store, and the tool that lists them."""

from collections.abc import Callable

from pydantic import BaseModel

from agent.storage.sql import SqlClient
from agent.tools import READ_ONLY, Tool, ToolContext, TypedTool
from gateway.feature_host import FeatureHost
from stepgate_poems.parts import get_poems
from stepgate_poems.settings import PoemSettings


class Favourites:
    """The favourite poems by owner, at most `most` of them in a list. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float], most: int) -> None:
        self._statements = statements
        self._clock = clock
        self._most = most

    async def add(self, owner: str, title: str) -> None:
        """Adds a poem; adding it again changes nothing."""
        await self._statements.write(
            "INSERT INTO poem_favourites (owner, title, added) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            owner, title, self._clock(),
        )  # fmt: skip

    async def list_titles(self, owner: str) -> list[str]:
        """The titles, oldest first."""
        rows = await self._statements.read(
            "SELECT title FROM poem_favourites WHERE owner = ? ORDER BY added, title LIMIT ?", owner, self._most
        )
        return [str(row[0]) for row in rows]

    async def record_listing(self, owner: str, run_id: str) -> None:
        """Records that a run has listed the titles: the row is deleted with the run, or when it is old."""
        await self._statements.write(
            "INSERT INTO poem_listings (owner, run_id, at) VALUES (?, ?, ?)", owner, run_id, self._clock()
        )


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
        await self._favourites.record_listing(context.owner, context.run_id)
        return Titles(titles=await self._favourites.list_titles(context.owner))

    def format_text(self, output: Titles) -> str:
        """One title a line."""
        return "\n".join(output.titles) or "There are no favourite poems."


def build(host: FeatureHost) -> Favourites:
    """What the door, the tool and the command share."""
    return Favourites(host.statements, host.context.store.clock, host.read_settings(PoemSettings).poems_listed)


def list_tools(host: FeatureHost) -> list[Tool]:
    """The tool."""
    return [FavouritePoemsTool(get_poems(host))]
