"""A store at revision 0012, written by the last version before the migrations were squashed.

`store_0012.db.gz` is its SQLite file, `store_0012.postgres.sql.gz` a dump of the same rows on PostgreSQL. It has runs
of every status with every type of event, conversations, memories, an API key, a collection, tasks and a pipeline
conversation. `store_0012.json` says what that version showed of each run.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import psycopg

DATA = Path(__file__).parent / "data"
REVISION = "0012"


def write_sqlite(path: Path) -> Path:
    """Writes the SQLite file to `path` and returns it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.decompress((DATA / "store_0012.db.gz").read_bytes()))
    return path


def load_postgres(url: str) -> None:
    """Loads the dump into an empty database."""
    dump = gzip.decompress((DATA / "store_0012.postgres.sql.gz").read_bytes())
    with psycopg.connect(url) as connection:
        connection.execute(dump)


def read_expected() -> dict[str, dict[str, Any]]:
    """Title, status, number of events, response, trace and tool results of each run, by run id."""
    expected: dict[str, dict[str, Any]] = json.loads((DATA / "store_0012.json").read_text("utf-8"))
    return expected
