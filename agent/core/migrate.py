"""Bring a database to the schema of this version. Imported only when needed: Alembic loads slowly.

`python -m agent.core.migrate` writes `migrations/fresh.sql`, from which empty SQLite files are made without it.
"""

import sqlite3
import tempfile
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from agent.core.migrations import FRESH, HEAD

_SCRIPTS = Path(__file__).parent / "migrations"
LOCK_SECONDS = 60
"""How long to wait for another process that is migrating the same file."""


def sqlite_engine(path: Path) -> Engine:
    """An engine whose transactions hold the write lock from their first moment.

    Python's driver opens none before a CREATE TABLE, so a kill in between would leave half a schema; and two
    processes that open a fresh folder together must not both find it empty."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=NullPool,
        connect_args={"timeout": LOCK_SECONDS, "isolation_level": None},
    )
    event.listen(engine, "begin", _begin_immediate)
    return engine


def postgres_engine(url: str) -> Engine:
    """An engine on the server at `url` (`postgresql://...`), through psycopg."""
    return create_engine(f"postgresql+psycopg{url[url.index(':') :]}", poolclass=NullPool)


def upgrade(engine: Engine, revision: str = HEAD) -> None:
    """Run the migrations up to `revision` in one transaction. Raises the driver's own errors."""
    _run(engine, revision, down=False)


def downgrade(engine: Engine, revision: str = "base") -> None:
    """Take migrations back down to `revision` in one transaction. Raises the driver's own errors."""
    _run(engine, revision, down=True)


def _run(engine: Engine, revision: str, *, down: bool) -> None:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            (command.downgrade if down else command.upgrade)(config, revision)
    except DBAPIError as error:
        if isinstance(error.orig, sqlite3.Error | psycopg.Error):
            raise error.orig from error
        raise
    finally:
        engine.dispose()


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def fresh_script() -> str:
    """What the migrations make of an empty SQLite file, as one script."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fresh.db"
        upgrade(sqlite_engine(path))
        connection = sqlite3.connect(path)
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
        connection.close()
    return "".join(f"{str(sql).strip()};\n\n" for (sql,) in rows)


if __name__ == "__main__":
    FRESH.write_text(fresh_script(), "utf-8")
