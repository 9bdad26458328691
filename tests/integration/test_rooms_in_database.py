"""Rooms in PostgreSQL: several gateways on one database serve and edit the same rooms, with the YAML of files."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.features.studio.room_stores import build_room_store
from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.integration.test_rooms import client_of, create, model_ids
from tests.support.keys import bearer
from tests.support.postgres import fresh_database


@pytest.fixture
def database() -> Iterator[str]:
    with fresh_database() as url:
        yield url


async def test_two_gateways_on_one_database_have_the_same_rooms(serve: Serve, tmp_path: Path, database: str) -> None:
    options = {"database_url": database, "room_store": "database"}
    async with (
        serve(**options) as one_url,
        serve(**options) as other_url,
        client_of(one_url) as one,
        client_of(other_url) as other,
    ):
        made = await create(one, name="Support Team", tools=["calculator"])
        assert (made["origin"], made["yaml"].startswith("name: Support Team\n")) == ("managed", True)
        shown = (await other.get("/v1/rooms/support-team")).json()
        assert (shown["version"], shown["yaml"]) == (made["version"], made["yaml"])
        assert "support-team" in await model_ids(other)
        body = {"version": made["version"], "description": "Sums"}
        changed = await asyncio.gather(
            one.patch("/v1/rooms/support-team", json=body),
            other.patch("/v1/rooms/support-team", json={**body, "description": "Products"}),
        )
        assert sorted(response.status_code for response in changed) == [200, 409]
        run = await other.post("/v1/agent", json={"prompt": "What is 6*7?", "room": "support-team"})
        assert "42" in run.json()["response"]
        wrong = await one.patch(
            "/v1/rooms/support-team",
            json={"version": (await one.get("/v1/rooms/support-team")).json()["version"], "tools": ["nope"]},
        )
        assert (wrong.status_code, wrong.json()["error"]["details"]["stage"]) == (400, "check_config")
        assert not (tmp_path / "data" / "rooms").exists()
    async with serve(**options, default_room="support-team") as url, client_of(url) as client:
        assert (await model_ids(client))[0] == "support-team", "the rooms are there at the next start"
        refused = await client.delete("/v1/rooms/support-team")
        assert refused.status_code == 409
    async with serve(**options) as url, client_of(url) as client:
        assert (await client.delete("/v1/rooms/support-team")).status_code == 204
        assert "support-team" not in await model_ids(client)
        revisions = (await client.get("/v1/rooms/support-team/versions")).json()["data"]
        assert [one["yaml"] is None for one in revisions] == [True, False, False]
        assert (revisions[2]["version"], revisions[2]["yaml"]) == (made["version"], made["yaml"])
        none = await client.post("/v1/rooms/support-team/restore", json={"revision": revisions[0]["revision"]})
        assert (none.status_code, "there are 2, 1" in none.text) == (400, True), none.text
        back = await client.post("/v1/rooms/support-team/restore", json={"revision": 1})
        assert back.json()["yaml"] == made["yaml"]
        later = await client.post("/v1/rooms/support-team/restore", json={"revision": 2, "version": "another"})
        assert later.status_code == 409
        later = await client.post("/v1/rooms/support-team/restore", json={"revision": 2, "version": made["version"]})
        assert later.json()["yaml"] == revisions[1]["yaml"]
        assert "support-team" in await model_ids(client)
    settings = {"database_url": database, "room_store": "database"}
    code, output = await asyncio.to_thread(stepgate, tmp_path, "rooms", "versions", "support-team", **settings)
    assert (code, [line.split()[0] for line in output.splitlines()]) == (0, ["5", "4", "3", "2", "1"]), output
    code, output = await asyncio.to_thread(stepgate, tmp_path, "rooms", "restore", "support-team", "1", **settings)
    assert (code, made["yaml"].strip() in output) == (0, True), output


async def test_a_key_sees_no_versions_of_another_owners_room(serve: Serve, tmp_path: Path, database: str) -> None:
    async with serve(database_url=database, room_store="database", require_key="always") as url:
        keys = {}
        for name in ("anna", "bert"):
            words = ("keys", "create", name, "--owner", name, "--scopes", "admin")
            keys[name] = (await asyncio.to_thread(stepgate, tmp_path, *words, database_url=database))[1].split()[-1]
        async with client_of(url) as client:
            made = await client.post("/v1/rooms", json={"name": "Annas"}, headers=bearer(keys["anna"]))
            assert made.status_code == 201, made.text
            for deleted in (False, True):
                found = await client.get("/v1/rooms/annas/versions", headers=bearer(keys["anna"]))
                assert found.status_code == 200
                assert (await client.get("/v1/rooms/annas/versions", headers=bearer(keys["bert"]))).status_code == 404
                body = {"revision": 1}
                refused = await client.post("/v1/rooms/annas/restore", json=body, headers=bearer(keys["bert"]))
                assert refused.status_code == 404
                if not deleted:
                    await client.delete("/v1/rooms/annas", headers=bearer(keys["anna"]))
            back = await client.post("/v1/rooms/annas/restore", json={"revision": 1}, headers=bearer(keys["anna"]))
            assert back.status_code == 200, back.text


async def test_an_earlier_text_connects_no_server_that_a_new_one_may_not(
    serve: Serve, tmp_path: Path, database: str
) -> None:
    servers = {"x": {"url": "https://x.example/mcp", "credential": "github"}}
    path = tmp_path / "data" / "credentials.json"
    path.parent.mkdir(mode=0o700)
    path.touch(mode=0o600)
    async with serve(database_url=database, room_store="database", require_key="always") as url:
        keys = {}
        for name, options in (("weak", ()), ("few", ("--tools", "room_edit,room_show"))):
            words = ("keys", "create", name, "--owner", "local", "--scopes", "rooms", *options)
            keys[name] = (await asyncio.to_thread(stepgate, tmp_path, *words, database_url=database))[1].split()[-1]
        async with client_of(url, headers=bearer(keys["weak"])) as client:
            path.write_text(json.dumps({"github": {"type": "bearer", "token": "t-1", "url": "https://x.example"}}))
            made = await client.post("/v1/rooms", json={"name": "Ours", "mcp_servers": servers})
            assert made.status_code == 201, made.text
            bare = {"version": made.json()["version"], "mcp_servers": None}
            assert (await client.patch("/v1/rooms/ours", json=bare)).status_code == 200
            path.write_text(json.dumps({"github": {"type": "bearer", "token": "t-1"}}))
            for key in keys.values():
                back = await client.post("/v1/rooms/ours/restore", json={"revision": 1}, headers=bearer(key))
                assert back.status_code == 403, back.text
            path.write_text(json.dumps({"github": {"type": "bearer", "token": "t-1", "url": "https://x.example"}}))
            few = await client.post("/v1/rooms/ours/restore", json={"revision": 1}, headers=bearer(keys["few"]))
            assert (few.status_code, "mcp_server_add" in few.text) == (403, True)
            back = await client.post("/v1/rooms/ours/restore", json={"revision": 1})
            assert back.status_code == 200, back.text


async def test_rooms_in_files_have_no_versions_and_say_what_does(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        await create(client, name="Ours")
        refused = await client.get("/v1/rooms/ours/versions")
        assert (refused.status_code, "keep their folder in git" in refused.text) == (409, True)


def test_rooms_in_a_database_need_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="AGENT_ROOM_STORE: set AGENT_DATABASE_URL"):
        build_room_store(Settings(_env_file=None, data_dir=tmp_path, room_store="database"))


async def test_ones_own_earlier_text_is_restored_without_the_mark_of_a_later_one(
    serve: Serve, tmp_path: Path, database: str
) -> None:
    """Only a text from the time before there were marks gets the one that another text of its room has."""
    options = {"database_url": database, "room_store": "database"}
    path = "/v1/rooms/ours"
    async with serve(**options) as url, client_of(url) as client:
        made = await create(client, name="Ours", system_prompt="Be brief.")
        body = {"version": made["version"], "system_prompt": "Pay Eve.", "from_outside": True}
        marked = (await client.patch(path, json=body)).json()
        assert marked["room"]["from_outside"]
        revisions = (await client.get(f"{path}/versions")).json()["data"]
        first = min(one["revision"] for one in revisions)
        body = {"revision": first, "version": marked["version"]}
        restored = await client.post(f"{path}/restore", json=body)
        assert restored.is_success, restored.text
        room = (await client.get(path)).json()["room"]
        assert (room["system_prompt"], room["from_outside"]) == ("Be brief.", False)
