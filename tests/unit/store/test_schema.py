"""The migrations and `schema.py` say the same, and every migration goes both ways."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.dialects import registry
from sqlalchemy.schema import CreateIndex, CreateTable

from agent.core import migrate, migrations, schema
from agent.core.migrate import downgrade, sqlite_engine, upgrade
from agent.core.sqlite import open_database


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = sqlite_engine(tmp_path / "stepgate.db")
    yield engine
    engine.dispose()


def definitions(engine: Engine) -> dict[str, str]:
    """The SQL of every table and index, by name."""
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
        return {str(name): " ".join(str(sql).split()) for name, sql in rows if name != "alembic_version"}


def test_the_migrations_make_what_the_schema_says(engine: Engine) -> None:
    upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, schema.metadata) == []


def test_they_make_it_to_the_letter(engine: Engine, tmp_path: Path) -> None:
    """What the comparison does not look at: conditions of indexes, WITHOUT ROWID, cascades."""
    upgrade(engine)
    direct = create_engine(f"sqlite:///{tmp_path / 'direct.db'}")
    schema.metadata.create_all(direct)
    assert definitions(engine) == definitions(direct)
    direct.dispose()


def test_empty_files_get_what_the_migrations_make(engine: Engine, tmp_path: Path) -> None:
    assert migrations.FRESH.read_text("utf-8") == migrate.fresh_script(), "run `python -m agent.core.migrate`"
    upgrade(engine)
    database = open_database(tmp_path / "fresh.db")
    fresh = sqlite_engine(tmp_path / "fresh.db")
    assert definitions(fresh) == definitions(engine)
    with fresh.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one() == migrations.HEAD
        tables = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'")).scalars().all()
        rows = {name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in tables}
    assert {name for name, count in rows.items() if count} == {"alembic_version"}
    asyncio.run(database.close())


def test_the_tables_can_be_written_for_postgresql() -> None:
    dialect = registry.load("postgresql")()
    for table in schema.metadata.sorted_tables:
        assert "CREATE TABLE" in str(CreateTable(table).compile(dialect=dialect))
        for index in table.indexes:
            assert "INDEX" in str(CreateIndex(index).compile(dialect=dialect))


def test_every_migration_goes_up_and_down_and_up_again(engine: Engine) -> None:
    states = [definitions(engine)]
    for revision in migrations.REVISIONS:
        upgrade(engine, revision)
        states.append(definitions(engine))
    for state, revision in zip(states[-2::-1], [*migrations.REVISIONS[-2::-1], "base"], strict=True):
        downgrade(engine, revision)
        assert definitions(engine) == state
    upgrade(engine)
    assert definitions(engine) == states[-1]
    assert set(states[-1]) > {"runs", "events", "signals", "blobs", "turns"}


def test_the_known_revisions_are_those_of_the_scripts() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    scripts = ScriptDirectory.from_config(config)
    assert tuple(script.revision for script in reversed(list(scripts.walk_revisions()))) == migrations.REVISIONS
    assert scripts.get_heads() == [migrations.HEAD]


def test_a_migration_that_breaks_leaves_nothing_behind(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE turns (in_the_way TEXT)"))  # the last table of the first revision
    before = definitions(engine)
    with pytest.raises(sqlite3.OperationalError, match="turns"):
        upgrade(engine)
    assert definitions(engine) == before


def test_migrating_twice_is_migrating_once(engine: Engine) -> None:
    upgrade(engine)
    before = definitions(engine)
    migrate.upgrade(engine)
    assert definitions(engine) == before


def test_every_stored_thing_has_an_owner() -> None:
    """Directly or through its run. Blobs are found by the checksum in a run's events only; foreign MCP servers, and
    with them their pins, are the gateway's."""
    owned = {table.name for table in schema.metadata.tables.values() if "owner" in table.c}
    through_run = {
        table.name
        for table in schema.metadata.tables.values()
        if any(key.target_fullname in {"runs.run_id", "chunk_sets.id"} for key in table.foreign_keys)
    }
    assert owned | through_run | {"blobs", "vector_sets", "mcp_pins"} == set(schema.metadata.tables)
