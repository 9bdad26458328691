"""A store or a model that fails or waits at one call, and gates at which a test holds what is under way."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from agent.core.events import EventBody, EventDraft
from tests.support.engine import Bench, engine_bench
from tests.support.script import Script

DEADLINE_S = 20
"""How long a test may wait for what must happen, in seconds; never reached when it happens."""

Hook = Callable[..., Awaitable[None]]
"""Awaited with the arguments of the call it was put before or after; what it raises, the call raises."""


class Gate:
    """What arrives here waits until the gate is opened. `work` makes it the work of a `FunctionTool`."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._opened = asyncio.Event()

    def open(self) -> None:
        """Let pass who waits, and all who come later."""
        self._opened.set()

    async def arrive(self, *_: Any, **__: Any) -> None:
        """Say so, and wait."""
        self.reached.set()
        await self._opened.wait()

    async def work(self, _: object) -> JsonValue:
        """Arrive as a tool does."""
        await self.arrive()
        return "let through"


@asynccontextmanager
async def bounded_bench(folder: Path, script: Script | None, **options: Any) -> AsyncIterator[Bench]:
    """`engine_bench` for a test that waits for events: it fails, rather than hangs, when one does not come."""
    async with asyncio.timeout(DEADLINE_S), engine_bench(folder, script, **options) as bench:
        yield bench


@contextmanager
def disturbed(target: object, method: str, *, before: Hook | None = None, after: Hook | None = None) -> Iterator[None]:
    """Inside the block, every call of the async `method` awaits `before` first and, once it is done, `after`.

    Of a journal's `append`, every append: none takes the way that waits for nothing."""
    original = getattr(target, method)
    immediate = getattr(target, f"{method}_now", None)

    async def call(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            await before(*args, **kwargs)
        result = await original(*args, **kwargs)
        if after is not None:
            await after(*args, **kwargs)
        return result

    setattr(target, method, call)
    if immediate is not None:
        setattr(target, f"{method}_now", lambda *_: None)
    try:
        yield
    finally:
        setattr(target, method, original)
        if immediate is not None:
            setattr(target, f"{method}_now", immediate)


def failing(error: Exception, *, times: int = 1) -> Hook:
    """A hook that raises `error` at the first `times` calls."""
    left = times

    async def hook(*_: Any, **__: Any) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            raise error

    return hook


def at_event(kind: type[EventBody], then: Hook, *, tool: str | None = None, step: str | None = None) -> Hook:
    """A hook for `Journal.append`: `then` is awaited for each event of this kind (of this tool, step) among them."""

    async def hook(run_id: str, epoch: int, drafts: Sequence[EventDraft]) -> None:
        for draft in drafts:
            fits = isinstance(draft.body, kind) and step in (None, draft.step_id)
            if fits and tool in (None, getattr(draft.body, "tool", None)):
                await then(run_id, epoch, drafts)

    return hook


class Rounds:
    """A hook that counts its calls, so that a test can await the next ones."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = asyncio.Event()

    async def __call__(self, *_: Any, **__: Any) -> None:
        self.count += 1
        self._changed.set()

    async def more(self, rounds: int) -> None:
        """Return after that many further calls."""
        until = self.count + rounds
        while self.count < until:
            self._changed.clear()
            await self._changed.wait()
