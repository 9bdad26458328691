"""`agent/storage/tables/` alone defines the schema: migrations and the generated script make exactly its tables."""

import asyncio
import re
import shutil
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

from agent.storage import migrate, migrations, sqlite, tables
from agent.storage.migrate import SCRIPTS, create_sqlite_engine, create_tables, upgrade
from agent.storage.sqlite import SCHEMA_SCRIPT, open_database

LATER = f'''"""A later migration."""

import sqlalchemy as sa
from alembic import op

revision = "r900"
down_revision = "{migrations.HEAD}"


def upgrade() -> None:
    """Adds a column."""
    op.add_column("blobs", sa.Column("note", sa.Text))
'''


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = create_sqlite_engine(tmp_path / "stepgate.db")
    yield engine
    engine.dispose()


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """The migrations with a later one."""
    folder = tmp_path / "migrations"
    shutil.copytree(SCRIPTS, folder)
    (folder / "versions" / "r900_note.py").write_text(LATER)
    return folder


def definitions(engine: Engine) -> dict[str, str]:
    """The SQL of every table, index and trigger, by name."""
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
        return {str(name): " ".join(str(sql).split()) for name, sql in rows if name != "alembic_version"}


def revision(engine: Engine) -> str:
    with engine.connect() as connection:
        return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())


def test_alembic_finds_no_difference_to_the_tables(engine: Engine) -> None:
    create_tables(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, tables.metadata) == []


def test_the_first_migration_makes_the_tables_to_the_letter(engine: Engine, tmp_path: Path) -> None:
    """The comparison of Alembic ignores conditions of indexes, WITHOUT ROWID, cascades and triggers."""
    create_tables(engine)
    direct = create_engine(f"sqlite:///{tmp_path / 'direct.db'}")
    tables.metadata.create_all(direct)
    assert definitions(engine) == definitions(direct)
    assert revision(engine) == migrations.HEAD
    direct.dispose()


def test_a_new_file_gets_the_same_from_the_generated_script(engine: Engine, tmp_path: Path) -> None:
    assert SCHEMA_SCRIPT.read_text("utf-8") == migrate.build_schema_script(), "run `python -m agent.storage.migrate`"
    create_tables(engine)
    database = open_database(tmp_path / "new.db")
    new = create_sqlite_engine(tmp_path / "new.db")
    assert definitions(new) == definitions(engine)
    assert revision(new) == migrations.HEAD
    with new.connect() as connection:
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'")).scalars().all()
        rows = {name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in names}
    assert {name for name, count in rows.items() if count} == {"alembic_version"}
    asyncio.run(database.close())


def test_the_tables_can_be_written_for_postgresql() -> None:
    dialect = registry.load("postgresql")()
    for table in tables.metadata.sorted_tables:
        assert "CREATE TABLE" in str(CreateTable(table).compile(dialect=dialect))
        for index in table.indexes:
            assert "INDEX" in str(CreateIndex(index).compile(dialect=dialect))


def test_runs_that_did_not_do_all_that_was_asked_become_partial(engine: Engine) -> None:
    create_tables(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'r001'"))
    ends = {
        "run_1": '{"completeness":"complete","reason":""}',
        "run_2": '{"completeness":"partial","reason":"a step failed"}',
        "run_3": '{"completeness":"aborted","reason":"harm"}',
    }
    insert_run = (
        "INSERT INTO runs (run_id, owner, room, status, title, epoch, last_seq, created_at, updated_at) "
        "VALUES (:run, 'local', 'test', 'succeeded', 't', 1, 2, 0, 0)"
    )
    insert_end = (
        "INSERT INTO events (run_id, seq, epoch, type, v, data, at) VALUES (:run, 2, 1, 'run.succeeded', 1, :data, 0)"
    )
    with engine.begin() as connection:
        for run, data in ends.items():
            connection.execute(text(insert_run), {"run": run})
            connection.execute(text(insert_end), {"run": run, "data": data})
    upgrade(engine)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT run_id, status FROM runs ORDER BY run_id"))
        assert [tuple(row) for row in rows] == [("run_1", "succeeded"), ("run_2", "partial"), ("run_3", "partial")]


def test_the_blobs_that_stored_logs_name_are_referred_to(engine: Engine) -> None:
    create_tables(engine)
    with engine.begin() as connection:
        for statement in (
            "UPDATE alembic_version SET version_num = 'r012'",
            "DROP TABLE blob_references",
            "INSERT INTO blobs (checksum, data) VALUES ('b1', x'00')",
            "INSERT INTO runs (run_id, owner, room, status, title, epoch, last_seq, created_at, updated_at) "
            "VALUES ('run_1', 'local', 'test', 'succeeded', 't', 1, 2, 0, 0)",
            "INSERT INTO events (run_id, seq, epoch, type, v, data, at) VALUES "
            """('run_1', 1, 1, 'tool.returned', 1, '{"blob"\\:"b1","content_blob"\\:null}', 0), """
            """('run_1', 2, 1, 'step.finished', 1, '{"output"\\:{"blob"\\:"b1"}}', 0), """
            """('run_1', 3, 1, 'tool.returned', 1, '{"blob"\\:"b2"}', 0)""",
        ):
            connection.execute(text(statement))
    upgrade(engine)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT run_id, checksum FROM blob_references")).all()
    assert [tuple(row) for row in rows] == [("run_1", "b1")], "b2 is not stored"


def test_the_known_revisions_are_those_of_the_scripts() -> None:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    scripts = ScriptDirectory.from_config(config)
    assert tuple(script.revision for script in reversed(list(scripts.walk_revisions()))) == migrations.REVISIONS
    assert scripts.get_heads() == [migrations.HEAD]


@pytest.mark.parametrize("revision", migrations.REVISIONS[migrations.REVISIONS.index("r009") :])
def test_a_migration_only_adds_so_that_processes_of_the_version_before_go_on(revision: str) -> None:
    (script,) = (SCRIPTS / "versions").glob(f"{revision}_*.py")
    statements = script.read_text("utf-8")
    taken_away = re.findall(r"(?i)\bDROP\b|\bRENAME\b|SET NOT NULL|drop_\w+|rename_\w+|alter_column", statements)
    assert taken_away == [], "two versions share a database while it is upgraded: see docs/deploy"
    for added in re.findall(r"ADD COLUMN .*", statements):
        assert "NOT NULL" not in added or "DEFAULT" in added, "an older process leaves the column out"


async def test_a_file_of_an_earlier_revision_is_migrated_with_what_it_holds(
    tmp_path: Path, scripts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old" / "stepgate.db"
    database = open_database(path)
    await database.write(lambda db: db.execute("INSERT INTO blobs (checksum, data) VALUES ('d1', x'00')"))
    await database.close()
    monkeypatch.setattr(migrate.upgrade, "__defaults__", (scripts,))
    monkeypatch.setattr(sqlite, "HEAD", "r900")
    database = open_database(path)
    rows = await database.read(lambda db: db.execute("SELECT checksum, data, note FROM blobs").fetchall())
    await database.close()
    assert rows == [("d1", b"\x00", None)]
    assert revision(create_sqlite_engine(path)) == "r900"


def test_an_empty_database_is_stamped_with_the_newest_revision_and_runs_no_later_migration(
    engine: Engine, scripts: Path
) -> None:
    create_tables(engine, scripts)
    assert revision(engine) == "r900"
    assert "note" not in definitions(engine)["blobs"], "the first migration made the tables as they are"


def test_a_migration_that_breaks_leaves_nothing_behind(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE vectors (in_the_way TEXT)"))
    before = definitions(engine)
    with pytest.raises(sqlite3.OperationalError, match="vectors"):
        create_tables(engine)
    assert definitions(engine) == before


def test_upgrading_twice_is_upgrading_once(engine: Engine, scripts: Path) -> None:
    create_tables(engine)
    upgrade(engine, scripts)
    before = definitions(engine)
    upgrade(engine, scripts)
    assert definitions(engine) == before


def test_every_stored_thing_has_an_owner() -> None:
    """Directly or through its run. Exceptions: blobs are found only through a run's events, and foreign MCP servers
    with their pins and housekeeping belong to the gateway. A room's owner stands in its text.
    """
    owned = {table.name for table in tables.metadata.tables.values() if "owner" in table.c}
    through_run = {
        table.name
        for table in tables.metadata.tables.values()
        if any(key.target_fullname in {"runs.run_id", "chunk_sets.id", "jobs.id"} for key in table.foreign_keys)
    }
    shared = {"blobs", "vector_sets", "mcp_pins", "room_versions", "housekeeping", "queue_workers"}
    assert owned | through_run | shared == set(tables.metadata.tables)
