"""A process that makes the changes of one list and kills itself (SIGKILL) after the first:
`python -m tests.support.change_crash_worker FOLDER`.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import JsonValue

from agent.core.events import Event, EventDraft, ToolReturned
from agent.core.models import AgentRequest, JsonObject, Room
from tests.support.crash_worker import Dying, die
from tests.support.engine import Bench, engine_bench
from tests.support.script import decides, says, script, wants
from tests.support.tools import EFFECT, FunctionTool

NAMES = ("make", "write", "give")


class DyingAfterCall(Dying):
    """The journal of a process that dies once the first result of a call is stored."""

    async def append(self, run_id: str, epoch: int, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        """Appends, and dies after a result."""
        events = await super().append(run_id, epoch, drafts)
        if any(isinstance(draft.body, ToolReturned) for draft in drafts):
            die()
        return events


def list_made(folder: Path) -> list[str]:
    """The changes that were made, in their order."""
    file = folder / "made.log"
    return file.read_text().split() if file.exists() else []


@asynccontextmanager
async def change_bench(folder: Path) -> AsyncIterator[Bench]:
    """An engine whose small model lists three changes."""

    def make_tool(name: str) -> FunctionTool:
        async def work(_: JsonObject) -> JsonValue:
            with (folder / "made.log").open("a") as log:
                log.write(f"{name}\n")
            return f"{name} is done"

        return FunctionTool(name, work, annotations=EFFECT)

    parts = [f"{name} the thing" for name in NAMES]
    calls = [{"for": number, "tool": name, "inputs": {"x": "thing"}} for number, name in enumerate(NAMES, start=1)]
    first = decides({"tool": "make", "inputs": {"x": "thing"}}, missing=parts)
    model = script(
        wants(*NAMES),
        says(json.dumps({"changes": calls}), to="planner", about="The user sees all changes"),
        first,
        says("All is done.", to="completion"),
    )
    room = Room(id="test", approval="side_effects", supervision="checks")
    tools = [make_tool(name) for name in NAMES]
    async with engine_bench(folder / "data", model, tools=tools, room=room, model_profile="small") as bench:
        yield bench


async def main() -> None:
    """Starts the run, approves its changes, and dies."""
    async with change_bench(Path(sys.argv[1])) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="Make the thing, write the thing, give the thing"))
        asked = await bench.service.wait_for_response(run_id)
        assert [item["tool"] for item in asked.metadata["approvals"][0]["items"]] == [*NAMES]
        object.__setattr__(bench.engine, "journal", DyingAfterCall(bench.engine.journal, "", 0))
        decided = await bench.service.submit_decision(run_id, "approve")
        await bench.service.wait_for_response(run_id, seen_seq=decided.last_seq)


if __name__ == "__main__":
    asyncio.run(main())
