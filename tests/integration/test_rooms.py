"""`/v1/rooms`: rooms as data, over the real HTTP door, with a gateway that serves each change without a restart."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.features.studio.engine.room_files import FileRoomStore
from tests.integration.conftest import Serve
from tests.support.keys import bearer, created_key

BY_HAND = "# ours\nname: Desk\ndescription: by hand\ntools: [calculator]\n"
SERVED_SECONDS = 10.0
JSON = {"content-type": "application/json"}


def client_of(url: str, **options: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=30, **options)


async def create(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    response = await client.post("/v1/rooms", json=fields)
    assert response.status_code == 201, response.text
    created: dict[str, Any] = response.json()
    return created


async def model_ids(client: httpx.AsyncClient) -> list[str]:
    return [card["id"] for card in (await client.get("/v1/models")).json()["data"]]


async def wait_until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SERVED_SECONDS):
        while not await holds():  # noqa: ASYNC110 - the files are watched by polling too
            await asyncio.sleep(0.05)


def files_of(folder: Path) -> dict[str, bytes]:
    """Every room file and the marks, but not the database."""
    paths = [*folder.glob("rooms/*"), *folder.glob("managed_rooms.json")]
    return {path.name: path.read_bytes() for path in paths if path.is_file()}


@pytest.mark.row("S002-05", "S002-06", "S002-07", "S002-08")
async def test_a_room_is_created_used_edited_copied_and_deleted(serve: Serve, tmp_path: Path) -> None:
    async with serve() as url, client_of(url) as client:
        created = await create(client, name="Support Team", tools=["calculator"], suggestions=["What is 2+2?"])
        assert (created["id"], created["origin"], created["owner"]) == ("support-team", "managed", "local")
        assert created["description"], "a default"
        assert created["room"]["fast_model"] is None, "the gateway's own model"
        assert "support-team" in await model_ids(client)
        run = await client.post("/v1/agent", json={"prompt": "What is 6*7?", "room": "support-team"})
        assert "42" in run.json()["response"]
        path = tmp_path / "data" / "rooms" / "support-team.yaml"
        path.write_text("# kept\n" + path.read_text())
        read = (await client.get("/v1/rooms/support-team")).json()
        body = {"version": read["version"], "description": "Sums", "budgets": {"max_steps": 3}, "suggestions": None}
        edited = (await client.patch("/v1/rooms/support-team", json=body)).json()
        assert edited["room"]["budgets"]["max_steps"] == 3
        assert (edited["description"], edited["suggestions"]) == ("Sums", [])
        assert edited["yaml"] == path.read_text()
        assert edited["yaml"].startswith("# kept\n")
        card = (await client.get("/v1/models/support-team")).json()
        assert card["description"] == "Sums"
        copied = await client.post("/v1/rooms/support-team/copy", json={"name": "Second"})
        assert copied.status_code == 201
        assert copied.json()["yaml"].startswith("# kept\n")
        assert (await client.delete("/v1/rooms/support-team")).status_code == 204
        assert "support-team" not in await model_ids(client)
        assert (await client.get("/v1/rooms/support-team")).status_code == 404
        assert [path.name for path in path.parent.iterdir()] == ["second.yaml"], "nothing is left behind"
        actions = [entry["action"] for entry in (await client.get("/v1/audit?action=room")).json()["data"]]
        assert actions == ["room.delete", "room.create", "room.edit", "room.create"]


async def test_a_shipped_room_is_read_only_and_can_be_copied(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        shown = (await client.get("/v1/rooms/knowledge")).json()
        assert shown["origin"] == "shipped"
        assert shown["yaml"].startswith("# Answers from your own documents")
        for response in (
            await client.patch("/v1/rooms/knowledge", json={"version": "", "name": "Mine"}),
            await client.delete("/v1/rooms/knowledge"),
            await client.post("/v1/rooms", json={"name": "Knowledge"}),
        ):
            assert response.status_code == 409
        copied = (await client.post("/v1/rooms/knowledge/copy", json={"id": "ours"})).json()
        assert copied["origin"] == "managed"
        assert copied["room"]["citations"] is True
        assert copied["yaml"].startswith("# Answers from your own documents")


WRONG_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "identifier", "a room needs a `name`"),
    ({"name": ""}, "identifier", "a room needs a `name`"),
    ({"name": "  "}, "identifier", "a room needs a `name`"),
    ({"name": "x" * 300}, "identifier", "at most 100"),
    ({"name": "two\nlines"}, "identifier", "line break"),
    ({"name": "日本語"}, "identifier", "give an `id`"),
    ({"name": "x", "id": "../x"}, "identifier", "cannot be a room's id"),
    ({"name": "x", "id": "..", "tools": []}, "identifier", "cannot be a room's id"),
    ({"name": "x", "id": "x/y"}, "identifier", "cannot be a room's id"),
    ({"name": "x", "id": "x" * 65}, "identifier", "cannot be a room's id"),
    ({"name": "x", "id": ""}, "identifier", "cannot be a room's id"),
    ({"name": "x", "colour": "red"}, "fields", "there is no field 'colour'; allowed: answer_tier, approval"),
    ({"name": "x", "budgets": {"max_step": 1}}, "fields", "did you mean budgets.max_steps"),
    ({"name": "x", "owner": "anna"}, "fields", "owner: it cannot be set"),
    ({"name": "x", "tools": ["calcluator"]}, "check_config", "did you mean calculator? allowed: "),
    ({"name": "x", "skills": ["nope"]}, "check_config", "allowed: answer-from-files"),
    ({"name": "x", "skill": "nope"}, "check_config", "there is no skill 'nope'"),
    ({"name": "x", "gates": ["nope"]}, "check_config", "allowed: "),
    ({"name": "x", "topic_tools": {"nope": []}}, "check_config", "there is no topic 'nope'"),
    (
        {"name": "x", "approval": "maybe"},
        "check_config",
        "approval: use 'never', 'side_effects' or 'always', not 'maybe'",
    ),
    (
        {"name": "x", "budgets": {"max_steps": 99}},
        "check_config",
        "budgets.max_steps: it must be at most 32, not 99",
    ),
    ({"name": "x", "tools": "calculator"}, "check_config", "tools: write a list, not 'calculator'"),
    ({"name": "x", "system_prompt": "x" * 50_001}, "check_config", "at most 50,000"),
    ({"name": "x", "system_prompt": "x" * 500_000}, "yaml_parse", "at most 262,144"),
    ({"name": "x", "description": "\ud800"}, "check_config", "lone surrogate"),
    ({"name": "x", "suggestions": [" "]}, "check_config", "suggestions.0"),
]


@pytest.mark.row("S002-08", "S002-32", "S002-37")
async def test_a_wrong_field_is_refused_with_the_allowed_ones(serve: Serve, tmp_path: Path) -> None:
    async with serve() as url, client_of(url) as client:
        await create(client, name="First")
        before, models = files_of(tmp_path / "data"), await model_ids(client)
        for fields, stage, reason in WRONG_FIELDS:
            response = await client.post("/v1/rooms", content=json.dumps(fields), headers=JSON)
            assert response.status_code == 400, (reason, response.text)
            error = response.json()["error"]
            assert (error["error_code"], error["details"]["stage"]) == ("ERR_VALIDATION", stage), reason
            assert error["recoverable"] is True
            assert reason in error["message"]
            assert files_of(tmp_path / "data") == before, reason
            assert await model_ids(client) == models, reason


@pytest.mark.parametrize(
    ("name", "room_id"),
    [
        ("my-room", "my-room"),
        ("class", "class"),
        ("Tool room for tools", "tool-room-for-tools"),
        ("Überblick & Café", "uberblick-cafe"),
        ("../x", "x"),
        ("2nd: #1 *best*", "2nd-1-best"),
        ("yes", "yes"),
        ("x" * 100, "x" * 64),
    ],
)
async def test_names_of_every_kind_make_an_id(serve: Serve, tmp_path: Path, name: str, room_id: str) -> None:
    async with serve() as url, client_of(url) as client:
        created = await create(client, name=name)
        assert (created["id"], created["name"]) == (room_id, name)
        assert [path.name for path in (tmp_path / "data" / "rooms").iterdir()] == [f"{room_id}.yaml"]
        assert not (tmp_path / "x.yaml").exists()


async def test_a_name_in_another_script_works_with_an_id(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        created = await create(client, name="サポート 🚀", id="support-ja")
        assert (created["name"], created["room"]["name"]) == ("サポート 🚀", "サポート 🚀")


async def test_the_second_of_two_editors_gets_a_conflict(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        read = await create(client, name="Ours")
        bodies = [{"version": read["version"], "persona": f"editor {number}"} for number in range(8)]
        responses = await asyncio.gather(*(client.patch("/v1/rooms/ours", json=body) for body in bodies))
        assert sorted(response.status_code for response in responses) == [200, *[409] * 7]
        won = next(response.json() for response in responses if response.status_code == 200)
        assert (await client.get("/v1/rooms/ours")).json()["room"]["persona"] == won["room"]["persona"]
        refused = next(response.json()["error"] for response in responses if response.status_code == 409)
        assert refused["details"]["stage"] == "version"
        without = await client.patch("/v1/rooms/ours", json={"persona": "x"})
        assert without.status_code == 400
        assert "version" in without.json()["error"]["message"]


async def test_a_refused_change_is_in_the_audit_record_once(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        made = await create(client, name="Ours")
        stale = {"version": "old", "persona": "x"}
        wrong = {"version": made["version"], "tools": ["calcluator"]}
        for response in (
            await client.patch("/v1/rooms/ours", json=stale),
            await client.patch("/v1/rooms/ours", json=wrong),
            await client.post("/v1/rooms", json={"name": "Ours"}),
            await client.delete("/v1/rooms/ours?version=old"),
        ):
            assert response.is_client_error
        entries = (await client.get("/v1/audit?action=room")).json()["data"]
        assert [(entry["action"], entry["outcome"]) for entry in entries] == [
            ("room.delete", "failed"), ("room.create", "failed"), ("room.edit", "failed"), ("room.edit", "failed"),
            ("room.create", "done"),
        ]  # fmt: skip
        assert (await client.get("/v1/rooms/ours")).json()["version"] == made["version"]


async def test_a_failing_write_changes_nothing_and_names_its_stage(serve: Serve, tmp_path: Path) -> None:
    async with serve() as url, client_of(url) as client:
        read = await create(client, name="Ours")
        before = files_of(tmp_path / "data")
        # A folder stands where the new file is written first: the system refuses to open it.
        (tmp_path / "data" / "rooms" / ".ours.yaml.new").mkdir()
        response = await client.patch("/v1/rooms/ours", json={"version": read["version"], "persona": "x"})
        assert response.status_code == 503
        assert response.json()["error"]["details"]["stage"] == "write"
        assert files_of(tmp_path / "data") == before
        assert (await client.get("/v1/rooms/ours")).json()["room"]["persona"] == ""


@pytest.mark.row("S002-09")
async def test_only_managed_rooms_are_edited_and_hand_made_ones_are_served_at_once(
    serve: Serve, tmp_path: Path
) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    async with serve(rooms_dir=rooms) as url, client_of(url) as client:
        (rooms / "desk.yaml").write_text(BY_HAND)

        async def is_served() -> bool:
            return "desk" in await model_ids(client)

        await wait_until(is_served)
        shown = (await client.get("/v1/rooms/desk")).json()
        assert (shown["origin"], shown["error"]) == ("file", None)
        for response in (
            await client.patch("/v1/rooms/desk", json={"version": shown["version"], "name": "Mine"}),
            await client.delete("/v1/rooms/desk"),
        ):
            assert response.status_code == 409
            assert "stepgate rooms edit desk --managed" in response.json()["error"]["message"]
        assert (rooms / "desk.yaml").read_text() == BY_HAND
        (rooms / "desk.yaml").unlink()

        async def is_gone() -> bool:
            return "desk" not in await model_ids(client)

        await wait_until(is_gone)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tools: [x", "not valid YAML"),
        ("name: Desk\nteh_tools: []\n", "there is no field 'teh_tools'"),
        ("name: Desk\ntools: [calcluator]\n", "did you mean calculator"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [" + "*b, " * 9_000 + "*b]", "expands to more than"),
        ("# " + "x" * 10_000_000, "at most 262,144 bytes are read"),
    ],
)
async def test_a_file_edited_into_nonsense_keeps_the_last_good_room(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, reason: str
) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "desk.yaml").write_text(BY_HAND)
    async with serve(rooms_dir=rooms) as url, client_of(url) as client:
        (rooms / "desk.yaml").write_text(text)

        async def has_error() -> bool:
            return (await client.get("/v1/rooms/desk")).json()["error"] is not None

        await wait_until(has_error)
        shown = (await client.get("/v1/rooms/desk")).json()
        assert reason in shown["error"]
        assert shown["room"]["description"] == "by hand"
        run = await client.post("/v1/agent", json={"prompt": "What is 6*7?", "room": "desk"})
        assert "42" in run.json()["response"]
        assert any("served as it was before" in record.message for record in caplog.records)
        (rooms / "desk.yaml").write_text(BY_HAND.replace("by hand", "mended"))

        async def is_mended() -> bool:
            shown = (await client.get("/v1/rooms/desk")).json()
            return shown["error"] is None and shown["description"] == "mended"

        await wait_until(is_mended)


async def test_rooms_that_settings_name_stay(serve: Serve, tmp_path: Path) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "desk.yaml").write_text(BY_HAND)
    async with serve(rooms_dir=rooms, default_room="desk") as url, client_of(url) as client:
        (rooms / "desk.yaml").unlink()

        async def is_noticed() -> bool:
            ids = [room["id"] for room in (await client.get("/v1/rooms")).json()["data"]]
            return "desk" not in ids

        await wait_until(is_noticed)
        assert (await model_ids(client))[0] == "desk"
        assert (await client.post("/v1/agent", json={"prompt": "What is 6*7?"})).status_code == 200


async def test_keys_need_the_scope_and_see_the_rooms_of_their_owner(serve: Serve, tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serve(require_key="always") as url:
        keys = {
            name: await created_key(data, name, owner=owner, scopes=scopes)
            for name, owner, scopes in (
                ("anna", "anna", "admin"), ("bob", "bob", "admin"), ("plain", "anna", "chat,agent"),
                ("ops", "local", "admin"),
            )
        }  # fmt: skip
        async with (
            client_of(url, headers=bearer(keys["anna"])) as anna,
            client_of(url, headers=bearer(keys["bob"])) as bob,
            client_of(url, headers=bearer(keys["plain"])) as plain,
            client_of(url, headers=bearer(keys["ops"])) as ops,
        ):
            async with client_of(url) as nobody:
                assert (await nobody.get("/v1/rooms")).status_code == 401
            assert (await plain.get("/v1/rooms")).status_code == 403
            assert (await plain.post("/v1/rooms", json={"name": "x"})).status_code == 403
            made = await create(anna, name="Annas")
            assert made["owner"] == "anna"
            assert "annas" in await model_ids(plain)
            assert "annas" not in await model_ids(bob)
            for response in (
                await bob.get("/v1/rooms/annas"),
                await bob.patch("/v1/rooms/annas", json={"version": made["version"], "name": "x"}),
                await bob.delete("/v1/rooms/annas"),
                await bob.get("/v1/models/annas"),
                await bob.post("/v1/agent", json={"prompt": "2+2", "room": "annas"}),
                await bob.post("/v1/chat/completions", json={"model": "annas", "messages": [
                    {"role": "user", "content": "2+2"}]}),
            ):  # fmt: skip
                assert response.status_code == 404
                assert "stepgate" in response.text, "the rooms that bob sees are listed"
                assert "annas" not in response.text.partition("known rooms:")[2].partition('"')[0]
            shared = await create(ops, name="Shared")
            assert "shared" in await model_ids(bob)
            refused = await anna.patch("/v1/rooms/shared", json={"version": shared["version"], "name": "x"})
            assert refused.status_code == 403
            assert (await ops.delete("/v1/users/anna")).status_code == 200
            assert not (data / "rooms" / "annas.yaml").exists()


@pytest.mark.row("S002-41")
async def test_a_file_keeps_its_style_and_its_list_of_tools_its_form(serve: Serve, tmp_path: Path) -> None:
    text = (
        "# who does sums\nname: Desk\ndescription: >-\n  Does sums,\n  kindly.\n"
        "tools:\n  - tool_name: calculator  # sums\n  - tool_name: current_time\n"
    )
    folder = tmp_path / "data" / "rooms"
    folder.mkdir(parents=True)
    async with serve() as url, client_of(url) as client:
        made = await create(client, name="Sums", tools=[{"tool_name": "calculator"}])
        assert (made["room"]["tools"], "- tool_name: calculator" in made["yaml"]) == (["calculator"], True)
        (folder / "sums.yaml").write_text(text)
        version = (await client.get("/v1/rooms/sums")).json()["version"]
        body = {"version": version, "tools": ["calculator", "web_fetch"], "persona": "Be brief."}
        edited = await client.patch("/v1/rooms/sums", json=body)
        assert edited.status_code == 200, edited.text
        assert edited.json()["room"]["tools"] == ["calculator", "web_fetch"]
        changed = text.replace("tool_name: current_time", "tool_name: web_fetch") + "persona: Be brief.\n"
        assert (folder / "sums.yaml").read_text() == edited.json()["yaml"] == changed
        refused = await client.post("/v1/rooms", json={"name": "Other", "tools": [{"name": "calculator"}]})
        assert refused.status_code == 400, "another form is none"


@pytest.mark.row("S002-39")
async def test_what_could_not_be_undone_is_in_the_error(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve() as url, client_of(url) as client:
        made = await create(client, name="Sums", tools=["calculator"])
        read = FileRoomStore._read_bytes

        def read_damaged(store: FileRoomStore, room_id: str) -> bytes | None:
            data = read(store, room_id)
            return data + b": [{" if data is not None and b"Changed" in data else data

        def restore(store: FileRoomStore, path: Path, data: bytes) -> None:
            raise OSError(28, "No space left on device", str(path))

        monkeypatch.setattr(FileRoomStore, "_read_bytes", read_damaged)
        monkeypatch.setattr(FileRoomStore, "_restore", restore)
        refused = await client.patch("/v1/rooms/sums", json={"version": made["version"], "description": "Changed"})
        assert refused.status_code >= 400, refused.text
        (left,) = refused.json()["error"]["details"]["rollback_errors"]
        assert "No space left on device" in left


@pytest.mark.row("S002-35")
async def test_a_text_that_is_not_what_was_saved_is_refused_and_the_file_stays(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve() as url, client_of(url) as client:
        made = await create(client, name="Sums", tools=["calculator"])
        before = files_of(tmp_path / "data")
        read = FileRoomStore._read_bytes

        def read_damaged(store: FileRoomStore, room_id: str) -> bytes | None:
            data = read(store, room_id)
            return data + b": [{" if data is not None and b"Changed" in data else data

        monkeypatch.setattr(FileRoomStore, "_read_bytes", read_damaged)
        refused = await client.patch("/v1/rooms/sums", json={"version": made["version"], "description": "Changed"})
        assert refused.status_code >= 400, refused.text
        assert refused.json()["error"]["details"]["stage"] == "write"
        monkeypatch.undo()
        assert files_of(tmp_path / "data") == before
        assert (await client.get("/v1/rooms/sums")).json()["room"]["description"] == made["room"]["description"]


async def test_a_server_of_a_room_is_removed_by_null_and_the_others_stay(serve: Serve) -> None:
    servers = {"notes": {"url": "https://notes.example/mcp"}, "orders": {"url": "https://orders.example/mcp"}}
    async with serve() as url, client_of(url) as client:
        made = await create(client, name="Ours", mcp_servers=servers)
        body = {"version": made["version"], "mcp_servers": {"notes": None, "orders": {"timeout": 5}}}
        left = (await client.patch("/v1/rooms/ours", json=body)).json()
        assert list(left["room"]["mcp_servers"]) == ["orders"]
        assert left["room"]["mcp_servers"]["orders"]["timeout"] == 5
        assert left["room"]["mcp_servers"]["orders"]["url"] == servers["orders"]["url"]
        none = await client.patch("/v1/rooms/ours", json={"version": left["version"], "mcp_servers": None})
        assert none.json()["room"]["mcp_servers"] == {}
