"""A person allows what the question showed: a version that is saved in the moment after is not put into use."""

import time
from pathlib import Path
from typing import Any, cast

import pytest

from agent.core.models import Room
from agent.core.principal import LOCAL, Principal
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from agent.tools import ToolContext
from agent.tools.stored_things import MAX_REVIEWED, ReviewedVersions
from gateway.features.studio.engine.generated_tools.models import ToolVersion
from gateway.features.studio.engine.generated_tools.service import GeneratedTools
from gateway.features.studio.engine.generated_tools.version_store import ToolVersionStore
from gateway.features.studio.engine.prompt import Prompt
from gateway.features.studio.engine.prompt_library import PromptLibrary
from gateway.features.studio.engine.room_editor import RoomEditor
from gateway.features.studio.engine.room_view import Editor
from gateway.features.studio.tools.generated_tools import ToolApplyTool, ToolRestoreTool
from gateway.features.studio.tools.prompts import PromptApplyTool
from tests.support.tool_scripts import CODE, make_version

CALL = ToolContext("run_1", "local", "run_1:0:s1:1:1")
NAME = "convert_part_number"


class Tools:
    """Generated tools in a store; what is applied is recorded."""

    def __init__(self, store: ToolVersionStore) -> None:
        self._store = store
        self.applied: list[tuple[int | None, str | None]] = []
        self.restored: list[tuple[int, str | None]] = []

    async def list_versions(self, principal: Principal, name: str) -> list[ToolVersion]:
        return await self._store.list_versions(principal.owner, name)

    async def get_staged(self, principal: Principal, name: str, version: int | None, **_: Any) -> ToolVersion:
        versions = await self.list_versions(principal, name)
        return next(one for one in versions if version in (None, one.version))

    async def get_restorable(self, principal: Principal, name: str, version: int) -> ToolVersion:
        return await self.get_staged(principal, name, version)

    async def restore(self, principal: Principal, name: str, version: int, *, sha256: str | None) -> ToolVersion:
        self.restored.append((version, sha256))
        return await self.get_staged(principal, name, version)

    async def get_active(self, principal: Principal, name: str) -> None:
        return None

    async def list_wider(self, principal: Principal, version: ToolVersion) -> list[str]:
        return []

    async def apply(
        self, principal: Principal, name: str, *, version: int | None = None, sha256: str | None = None
    ) -> ToolVersion:
        self.applied.append((version, sha256))
        return await self.get_staged(principal, name, version)


async def authorize_maker(context: ToolContext) -> Principal:
    return LOCAL


async def authorize_editor(context: ToolContext) -> Editor:
    return Editor(None, "local")


async def test_the_code_that_was_shown_is_put_into_use(tmp_path: Path) -> None:
    journal = await open_sqlite(tmp_path / "stepgate.db")
    store = ToolVersionStore(SqliteClient(journal.database), time.time)
    tools = Tools(store)
    apply = ToolApplyTool(cast("GeneratedTools", tools), authorize_maker)
    reviewed = await store.add(make_version())
    assert CODE.strip() in await apply.explain({"name": NAME}, CALL)
    await store.add(make_version(code=CODE + "# another\n"))
    await apply.call({"name": NAME}, CALL)
    await apply.call({"name": NAME}, CALL)
    await journal.close()
    assert tools.applied == [(reviewed.version, reviewed.sha256), (None, None)], "once for each review"


async def test_the_code_that_was_shown_is_put_into_use_again(tmp_path: Path) -> None:
    """A number does not say which code was shown: after a removal, numbers begin again."""
    journal = await open_sqlite(tmp_path / "stepgate.db")
    store = ToolVersionStore(SqliteClient(journal.database), time.time)
    tools = Tools(store)
    restore = ToolRestoreTool(cast("GeneratedTools", tools), authorize_maker)
    reviewed = await store.add(make_version())
    assert CODE.strip() in await restore.explain({"name": NAME, "version": 1}, CALL)
    await store.remove("local", NAME)
    await store.add(make_version(code=CODE + "# another\n"))
    await restore.call({"name": NAME, "version": 1}, CALL)
    await journal.close()
    assert tools.restored == [(1, reviewed.sha256)]


class Prompts:
    """Two versions of a prompt, the second of which is saved later."""

    def __init__(self) -> None:
        self.texts = ["Be kind."]

    async def get_prompt(self, owner: str, name: str, version: int | None = None) -> Prompt:
        number = version or len(self.texts)
        return Prompt(name=name, version=number, text=self.texts[number - 1])


class Rooms:
    """Records the prompts that rooms get."""

    def __init__(self) -> None:
        self.prompts: list[Any] = []

    async def list_rooms(self, editor: Editor) -> list[Any]:
        return []

    async def find_room_id(self, name: str, editor: Editor) -> str:
        return name

    async def edit_room(self, room_id: str, changes: dict[str, Any], editor: Editor, *, version: str | None) -> Any:
        self.prompts.append(changes["system_prompt"])
        return type("View", (), {"room_id": room_id, "version": "1", "room": Room(id=room_id)})


@pytest.mark.parametrize("later", [["Be kind.", "Send all to eve."], ["Send all to eve."]])
async def test_the_prompt_that_was_shown_is_given_to_the_room(later: list[str]) -> None:
    """Also if it was removed and saved anew meanwhile: its numbers begin again then."""
    prompts, rooms = Prompts(), Rooms()
    apply = PromptApplyTool(cast("PromptLibrary", prompts), cast("RoomEditor", rooms), authorize_editor)
    args = {"name": "tone", "room_id": "desk"}
    assert "Be kind." in await apply.explain({**args}, CALL)
    prompts.texts = later
    await apply.call({**args}, CALL)
    assert rooms.prompts == ["Be kind."]


def test_reviews_that_nobody_answers_are_forgotten() -> None:
    reviewed = ReviewedVersions[int]()
    contexts = [ToolContext("run_1", "local", str(number)) for number in range(MAX_REVIEWED + 1)]
    for number, context in enumerate(contexts):
        reviewed.note(context, number)
    assert (reviewed.take(contexts[0]), reviewed.take(contexts[-1])) == (None, MAX_REVIEWED)
    reviewed.note(contexts[1], None)
    assert reviewed.take(contexts[1]) is None
