"""Creates and upgrades the tables through Alembic. Imported only when needed: Alembic and SQLAlchemy load slowly.

`python -m agent.storage.migrate` writes `tables.sqlite.sql`: what Alembic makes of an empty SQLite file. A new data
folder gets its tables from it in 20 ms; importing SQLAlchemy and Alembic takes 300 ms.
"""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from agent.storage.migrations import FIRST
from agent.storage.sqlite import SCHEMA_SCRIPT

SCRIPTS = Path(__file__).parent / "migrations"
LOCK_SECONDS = 60
"""How long to wait for another process that changes the schema of the same file."""


def create_sqlite_engine(path: Path) -> Engine:
    """An engine whose transactions hold the write lock from the start.

    Python's driver opens no transaction before a CREATE TABLE, so a kill in between would leave half a schema. And of
    two processes that open a new folder together, only one may find it empty.
    """
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=NullPool,
        connect_args={"timeout": LOCK_SECONDS, "isolation_level": None},
    )
    event.listen(engine, "begin", _begin_immediate)
    return engine


def create_postgres_engine(url: str) -> Engine:
    """An engine on the server at `url` (`postgresql://...`), through psycopg."""
    return create_engine(f"postgresql+psycopg{url[url.index(':') :]}", poolclass=NullPool)


def create_tables(engine: Engine, scripts: Path = SCRIPTS) -> None:
    """Creates the tables of an empty database and stamps it, in one transaction. Raises the driver's own errors.

    The first migration makes all tables as they are now, so the later ones must not run.
    """
    with _configure(engine, scripts) as config:
        command.upgrade(config, FIRST)
        command.stamp(config, "head")


def upgrade(engine: Engine, scripts: Path = SCRIPTS) -> None:
    """Runs the migrations after the database's revision, in one transaction. Raises the driver's own errors."""
    with _configure(engine, scripts) as config:
        command.upgrade(config, "head")


@contextmanager
def _configure(engine: Engine, scripts: Path) -> Iterator[Config]:
    """Yields Alembic's configuration with a connection in a transaction."""
    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            yield config
    except DBAPIError as error:
        if error.orig is not None:  # the error of the driver: of sqlite3, or of psycopg, which may not be installed
            raise error.orig from error
        raise
    finally:
        engine.dispose()


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def build_schema_script() -> str:
    """The statements that make the tables of an empty SQLite file, separated by `;` and a blank line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.db"
        create_tables(create_sqlite_engine(path))
        connection = sqlite3.connect(path)
        # SQLAlchemy creates the indexes of a table in any order: sorted by name, so that the script stays the same.
        rows = connection.execute(
            "SELECT sql FROM sqlite_master one WHERE sql IS NOT NULL ORDER BY (SELECT rowid FROM sqlite_master WHERE "
            "type = 'table' AND name = one.tbl_name), type <> 'table', name"
        ).fetchall()
        connection.close()
    return "".join(f"{str(sql).strip()};\n\n" for (sql,) in rows)


if __name__ == "__main__":
    SCHEMA_SCRIPT.write_text(build_schema_script(), "utf-8")
