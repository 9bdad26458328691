"""The gateway under fire: `stepgate serve` with tools whose effects the ledger writes down, and points to die at.

`python -m tests.soak.gateway`, with the ledger's URL in `SOAK_LEDGER` and, in `SOAK_CRASH`, `POINT:N`: it kills itself
(SIGKILL) when it comes to that point for the Nth time.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
from pydantic import BaseModel

import gateway.bootstrap_tools
from agent.core.settings import Settings
from agent.storage.journal_sqlite import SqliteJournal
from agent.tools import ToolAnnotations, ToolContext, ToolResult, TypedTool
from gateway.cli.server import run_server
from mcp_tools.builtin import Builtins
from tests.support.tools import EFFECT, IDEMPOTENT

POINTS = (
    "before create", "after create", "before append", "after append", "before claim", "after claim", "before blob",
    "before effect", "after effect",
)  # fmt: skip
"""Where it can be told to die: around each write of the journal, and on either side of an effect."""


class CrashPoints:
    """Counts how often the chosen point was come to."""

    def __init__(self, chosen: str) -> None:
        self._point, _, number = chosen.partition(":")
        self._left = int(number or 0)

    def at(self, point: str) -> None:
        """Die here, if it is time."""
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: type, method: str, name: str) -> None:
        """Let every call of an async method come to the points before and after it."""
        original = getattr(owner, method)

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.at(f"before {name}")
            result = await original(*args, **kwargs)
            self.at(f"after {name}")
            return result

        setattr(owner, method, call)


class Matter(BaseModel):
    """What it is about."""

    x: str = ""


class Deed(BaseModel):
    """What was done."""

    done: str


class EffectTool(TypedTool[Matter, Deed]):
    """Does something to the world, which the ledger is told of."""

    def __init__(self, url: str, crash: CrashPoints) -> None:
        super().__init__()
        self.url = url
        self._crash = crash

    async def run(self, args: Matter, context: ToolContext) -> Deed:
        """Do it."""
        entry = {"tool": self.name, "run_id": context.run_id, "key": context.idempotency_key}
        self._crash.at("before effect")
        async with httpx.AsyncClient(timeout=20) as client:
            (await client.post(self.url, json=entry)).raise_for_status()
        self._crash.at("after effect")
        return Deed(done=f"{self.name} did {args.x}")

    def format_text(self, output: Deed) -> str:
        """As a sentence."""
        return output.done


class Send(EffectTool):
    """Nobody can say afterwards whether it happened."""

    name = "send"
    description = "Send a mail."
    annotations = EFFECT


class Order(EffectTool):
    """The target can be asked afterwards."""

    name = "order"
    description = "Order a thing."
    annotations = EFFECT

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """What the target knows: it has not happened when it is not there, and is done now."""
        async with httpx.AsyncClient(timeout=20) as client:
            happened = (await client.get(self.url, params={"key": key})).json()["happened"]
        if not happened:
            return await self.call({"x": "after a crash"}, context)
        return ToolResult({"done": "order did happen"}, "order did happen")


class Record(EffectTool):
    """May be done again under its key."""

    name = "record"
    description = "Record a fact."
    annotations = IDEMPOTENT


class Lookup(TypedTool[Matter, Deed]):
    """Reads."""

    name = "lookup"
    description = "Look something up."
    annotations = ToolAnnotations(read_only=True)

    async def run(self, args: Matter, context: ToolContext) -> Deed:
        """Take a moment."""
        await asyncio.sleep(0.03)
        return Deed(done=f"lookup did {args.x}")

    def format_text(self, output: Deed) -> str:
        """As a sentence."""
        return output.done


def arm(url: str, crash: CrashPoints) -> None:
    """Give this process' gateway the tools, before it takes up what an earlier one has left, and the points."""
    bootstrap: Any = gateway.bootstrap_tools
    shipped: Callable[..., Builtins] = bootstrap.make_builtin_tools
    extra = (Send(url, crash), Order(url, crash), Record(url, crash), Lookup())

    def with_ours(*args: Any, **kwargs: Any) -> Builtins:
        builtins = shipped(*args, **kwargs)
        return replace(builtins, tools=(*builtins.tools, *extra))

    bootstrap.make_builtin_tools = with_ours
    for method, name in (("create_run", "create"), ("append", "append"), ("claim", "claim"), ("put_blob", "blob")):
        crash.around(SqliteJournal, method, name)
    journal: Any = SqliteJournal
    journal.append_now = lambda *_: None  # so that every append is one of the points


if __name__ == "__main__":
    arm(os.environ["SOAK_LEDGER"], CrashPoints(os.environ.get("SOAK_CRASH", "")))
    raise SystemExit(asyncio.run(run_server(Settings(_env_file=None))))
