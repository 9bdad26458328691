"""Appends to a run forever and prints each acknowledged position: the process that `test_kill.py` kills."""

import asyncio
import sys
from pathlib import Path

from agent.core.events import EventDraft, GateChecked
from agent.storage.journal_sqlite import SqliteJournal, open_sqlite

WRITERS = 4


async def write(journal: SqliteJournal, run_id: str) -> None:
    """Appends forever; prints a line `run seq` for each append that returned."""
    claim = await journal.claim(run_id, worker="writer", lease_s=60)
    if claim is None:
        raise SystemExit(f"{run_id} is not to be had")
    while True:
        body = GateChecked(gate="test", passed=True, reason="x" * 500)
        events = await journal.append(run_id, claim.epoch, [EventDraft(body), EventDraft(body)])
        print(run_id, events[-1].seq, flush=True)


async def main(path: Path) -> None:
    """Writes several runs at once, so that a kill hits a shared transaction."""
    store = await open_sqlite(path)
    async with asyncio.TaskGroup() as group:
        for number in range(WRITERS):
            group.create_task(write(store.journal, f"run_{number}"))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
