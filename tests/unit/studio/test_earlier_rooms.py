"""Which rooms stay listed until they can be marked."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from gateway.features.studio.engine.earlier_rooms import mark_earlier_rooms
from gateway.features.studio.engine.room_files import FileRoomStore


async def test_a_room_that_cannot_be_read_stays_listed_until_it_is_marked(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path / "stepgate.db")
    statements, rooms = SqliteClient(store.database), FileRoomStore(tmp_path, tmp_path / "marks.json")
    await statements.write(
        "CREATE TABLE feature_schema AS SELECT 'studio' AS feature, 'rooms_of_runs' AS revision, 1.0 AS applied"
    )
    await statements.write("CREATE TABLE rooms_of_runs AS SELECT 'ours' AS room_id UNION SELECT 'deleted'")

    async def refresh() -> None:
        """Nothing is served."""

    async def mark(text: str) -> tuple[str, list[Any]]:
        (tmp_path / "ours.yaml").write_text(text)
        await mark_earlier_rooms(statements, store.journal, cast("Any", SimpleNamespace(store=rooms, refresh=refresh)))
        return (tmp_path / "ours.yaml").read_text(), [*await statements.read("SELECT room_id FROM rooms_of_runs")]

    broken = "id: ours\npersona: [\n"
    assert await mark(broken) == (broken, [("ours",)])
    assert await mark("id: ours\n") == ("id: ours\nfrom_outside: true\n", [])
    await store.close()
