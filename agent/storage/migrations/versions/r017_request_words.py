"""Adds the words of requests, which a search of runs reads, and takes those of the runs so far from their logs."""

import json

from alembic import op
from sqlalchemy import Connection, text

from agent.storage.journal_rows import make_search_words
from agent.storage.tables.runs import request_words

revision = "r017"
down_revision = "r016"

RUNS = 500
"""Runs whose requests are read at once."""
_NEXT = text(
    "SELECT r.run_id, e.data FROM runs r JOIN events e ON e.run_id = r.run_id AND e.seq = 1 "
    "WHERE r.run_id > :after AND NOT r.hidden ORDER BY r.run_id LIMIT :count"
)
_INSERT = text("INSERT INTO request_words (run_id, words) VALUES (:run_id, :words) ON CONFLICT DO NOTHING")


def upgrade() -> None:
    """Creates what the first migration has not made already, and fills it."""
    connection = op.get_bind()
    request_words.create(connection, checkfirst=True)
    after = ""
    while rows := connection.execute(_NEXT, {"after": after, "count": RUNS}).all():
        _insert_words(connection, [(str(run_id), str(data)) for run_id, data in rows])
        after = str(rows[-1][0])


def _insert_words(connection: Connection, rows: list[tuple[str, str]]) -> None:
    words = [{"run_id": run_id, "words": make_search_words(_read_prompt(data))} for run_id, data in rows]
    if wanted := [one for one in words if one["words"]]:
        connection.execute(_INSERT, wanted)


def _read_prompt(data: str) -> str:
    """The prompt in the first event of a run; empty in a damaged one, which the search must not make unreadable."""
    try:
        prompt = json.loads(data)["request"]["prompt"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return prompt if isinstance(prompt, str) else ""
