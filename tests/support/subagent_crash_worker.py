"""A process with a sub-agent in the middle of a run, which kills itself (SIGKILL) at a chosen moment.

`python -m tests.support.subagent_crash_worker FOLDER MOMENT N [DATABASE_URL]`: as `crash_worker` does it. Prints
`finished` when it got to the end.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from agent.core.models import AgentRequest, JsonObject
from tests.support.crash_worker import Dying, die
from tests.support.engine import Bench, engine_bench
from tests.support.script import Script, plans, says, script
from tests.support.subagents import ends, looks, room_with, scout, skill_folder, spawns


def scenario() -> Script:
    """A skill starts two scouts in one turn; each looks twice and ends. Told by what stands in the conversation: a
    resumed process asks a fresh script."""
    return script(
        plans({"tool": "delegate", "inputs": {"task": "look around"}}, {"tool": "completion", "depends_on": ["s1"]}),
        says("Both are back.", to="skill", about="Saw far far."),
        spawns("east", "west"),
        ends(about="saw far", answer="Saw far far."),
        looks(about="saw near", id="l2", x="far"),
        looks(x="near"),
        says("All done.", to="completion"),
    )


@asynccontextmanager
async def subagent_crash_bench(
    folder: Path, moment: str = "", number: int = 0, *, database_url: str | None = None
) -> AsyncIterator[Bench]:
    """The engine of the scenario; it dies at the chosen moment. Each look leaves a line in `look.log`."""
    calls = 0

    async def look(args: JsonObject) -> JsonValue:
        nonlocal calls
        calls += 1
        with (folder / "look.log").open("a") as log:
            log.write(f"{args['x']}\n")
        if moment == "tool" and calls == number:
            die()
        return f"saw {args['x']}"

    roots = [skill_folder(folder, "spawn_scout")]
    room = room_with("spawn_scout", supervision="checks")
    options: dict[str, Any] = {"room": room, "skill_roots": roots, "database_url": database_url}
    async with engine_bench(folder / "data", scenario(), kinds=[scout(look)], **options) as bench:
        if moment in ("before", "after"):
            object.__setattr__(bench.engine, "journal", Dying(bench.engine.journal, moment, number))
        yield bench


async def main() -> None:
    """Start the run and see it through, or die."""
    folder, moment, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    url = sys.argv[4] if len(sys.argv) > 4 else None
    async with subagent_crash_bench(folder, moment, number, database_url=url) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="search around, then tell"))
        await bench.service.wait_until_stopped(run_id)
    print("finished", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
