"""The gateway on a journal that forgets: `python -m tests.bench.undurable serve`."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from agent.storage.journal_sqlite import SqliteStore, open_sqlite
from gateway import bootstrap
from gateway.entry import main
from tests.bench.memory_journal import MemoryJournal


async def open_undurable(path: Path) -> SqliteStore:
    """The usual store with another journal; conversations and vectors stay where they are."""
    return replace(await open_sqlite(path), journal=cast("Any", MemoryJournal()))


if __name__ == "__main__":
    vars(bootstrap)["open_sqlite"] = open_undurable
    main()
