"""Signals of runs on SQLite: decisions, replies and cancellations, as `SqliteJournal` stores and reads them."""

import json
import sqlite3

from agent.storage.journal import Signal, SignalKind
from agent.storage.journal_rows import SELECT_DECISIONS, build_run_not_found_error, check_undecided

_INSERT = "INSERT INTO signals (run_id, kind, payload, at) VALUES (?,?,?,?)"
_SELECT = "SELECT id, run_id, kind, payload, at FROM signals WHERE run_id = ? AND id > ? ORDER BY id"


def check_signal(db: sqlite3.Connection, run_id: str, payload: dict[str, object]) -> None:
    """Raises `ConflictError` for a decision about what was decided before."""
    if "approvals" in payload:
        check_undecided(run_id, payload, db.execute(SELECT_DECISIONS, (run_id,)))


def insert_signal(
    db: sqlite3.Connection, run_id: str, kind: SignalKind, payload: dict[str, object], *, at: float
) -> None:
    """Stores a signal that came `at` this time. Raises `NotFoundError` for an unknown run."""
    try:
        db.execute(_INSERT, (run_id, kind, json.dumps(payload), at))
    except sqlite3.IntegrityError as error:
        raise build_run_not_found_error(run_id) from error


def select_signals(db: sqlite3.Connection, run_id: str, after: int) -> list[Signal]:
    """The signals of a run with an id above `after`, oldest first."""
    return [Signal(row[0], row[1], row[2], json.loads(row[3]), row[4]) for row in db.execute(_SELECT, (run_id, after))]
