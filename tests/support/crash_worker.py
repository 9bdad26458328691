"""A process that carries out one run and kills itself (SIGKILL) at a chosen moment.

`python -m tests.support.crash_worker FOLDER MOMENT N`: MOMENT is `after` the Nth append, `before` it, or `tool` to
die inside the Nth tool call. Prints `finished` when it got to the end. Without N it resumes what it finds.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import JsonValue

from agent.core.events import Event, EventDraft
from agent.core.models import AgentRequest, JsonObject
from agent.storage.journal import RunAppend
from tests.support.engine import Bench, engine_bench
from tests.support.script import Call, Script, plans, says, script
from tests.support.tools import EFFECT, IDEMPOTENT, FunctionTool

SKILL = (
    "---\nname: investigate\ndescription: Investigates.\nallowed-tools: lookup send\n---\nLook it up, then send it.\n"
)


def scenario() -> Script:
    """Two chains that finish out of order, one of them a skill with a side effect, and an answer."""
    return script(
        plans(
            {"tool": "record", "inputs": {"x": "first"}},
            {"tool": "investigate", "tools": ["lookup", "send"], "inputs": {"task": "look up and send"}},
            {"tool": "lookup", "inputs": {"x": "$s1"}, "depends_on": ["s1"]},
            {"tool": "completion", "depends_on": ["s1", "s2", "s3"]},
        ),
        # By what stands in the conversation, not by counting: a resumed process asks a fresh script.
        says("Looked up and sent.", to="skill", about="send did mail"),
        says("", to="skill", about="lookup did skill", calls=(Call("send", {"x": "mail"}, id="c2"),)),
        says("", to="skill", calls=(Call("lookup", {"x": "skill"}, id="c1"),)),
        says("All done.", to="completion"),
    )


class Dying:
    """The journal of a process that dies at its Nth append."""

    def __init__(self, inner: object, moment: str, number: int) -> None:
        self._inner = inner
        self._moment = moment
        self._left = number

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def append_now(self, *appends: RunAppend) -> None:
        """Every append is one at which it can die."""

    async def append(self, run_id: str, epoch: int, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        """Append, and die before or after the Nth."""
        self._left -= 1
        if self._moment == "before" and self._left == 0:
            die()
        events: tuple[Event, ...] = await self._inner.append(run_id, epoch, drafts)  # type: ignore[attr-defined]
        if self._moment == "after" and self._left == 0:
            die()
        return events


def die() -> None:
    """As `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def crash_tools(folder: Path, die_in_call: int = 0) -> list[FunctionTool]:
    """`lookup` reads, `record` is idempotent, `send` is a side effect; each call leaves a line in its file."""
    calls = 0

    def tool(name: str) -> FunctionTool:
        async def work(args: JsonObject) -> JsonValue:
            nonlocal calls
            calls += 1
            with (folder / f"{name}.log").open("a") as log:
                log.write(f"{args.get('x')}\n")
            if calls == die_in_call:
                die()
            return f"{name} did {args.get('x')}"

        annotations = {"record": IDEMPOTENT, "send": EFFECT}.get(name)
        return FunctionTool(name, work, annotations=annotations) if annotations else FunctionTool(name, work)

    return [tool("lookup"), tool("record"), tool("send")]


@asynccontextmanager
async def crash_bench(folder: Path, moment: str = "", number: int = 0) -> AsyncIterator[Bench]:
    """The engine of the scenario; it dies at the chosen moment."""
    skills = folder / "skills" / "investigate"
    skills.mkdir(parents=True, exist_ok=True)
    (skills / "SKILL.md").write_text(SKILL)
    tools = crash_tools(folder, number if moment == "tool" else 0)
    async with engine_bench(folder / "data", scenario(), tools=tools, skill_roots=[folder / "skills"]) as bench:
        if moment in ("before", "after"):
            object.__setattr__(bench.engine, "journal", Dying(bench.engine.journal, moment, number))
        yield bench


async def main() -> None:
    """Start the run and see it through, or die."""
    folder, moment, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    async with crash_bench(folder, moment, number) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="search, investigate and record"))
        await bench.service.wait_until_stopped(run_id)
    print("finished", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
