"""`kill -9` of a process that writes: acknowledged appends are stored, and no append is stored in part."""

import sys
from pathlib import Path

import pytest

from agent.storage.journal_sqlite import open_sqlite
from tests.contract.journal_stores import LEASE_S, new_run
from tests.support.processes import start
from tests.unit.storage.writer import WRITERS


@pytest.mark.row("Scard-08")
@pytest.mark.parametrize("lines", [1, 40, 200])
async def test_every_acknowledged_append_survives_a_kill(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "stepgate.db"
    store = await open_sqlite(path)
    for number in range(WRITERS):
        await new_run(store.journal, f"run_{number}", worker="writer")
    await store.close()

    process = start([sys.executable, "-m", "tests.unit.storage.writer", str(path)])
    for _ in range(lines):
        process.line_with("run_")
    process.kill()

    assert len(process.output) >= lines
    acknowledged = {f"run_{number}": 1 for number in range(WRITERS)}
    for line in process.output:
        run_id, _, said = line.partition(" ")
        if said.isdigit():  # the last line may be cut
            acknowledged[run_id] = int(said)
    store = await open_sqlite(path)
    for run_id, seq in acknowledged.items():
        log = await store.journal.read_events(run_id)
        assert [event.seq for event in log] == list(range(1, len(log) + 1))
        assert len(log) >= seq
        assert len(log) % 2 == 1  # appends are of two: none is stored by half
        assert await store.journal.claim(run_id, worker="writer", lease_s=LEASE_S) is not None
    await store.close()
