"""Where applications on frameworks that keep nothing themselves store their finished turns.

Runs in the peers' environments too: nothing of Stepgate may be imported here.
"""

import sqlite3
from pathlib import Path


class Traces:
    """A row for each finished turn in SQLite, which waits for the disk as often as Stepgate's journal does."""

    def __init__(self, folder: Path) -> None:
        # hayhooks opens it in a thread of its start and uses it in that of the event loop.
        self._database = sqlite3.connect(folder / "traces.db", isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS traces (id INTEGER PRIMARY KEY, messages BLOB)")

    def store(self, messages: bytes | str) -> None:
        """Keep the messages of one turn, as JSON."""
        self._database.execute("INSERT INTO traces (messages) VALUES (?)", (messages,))
