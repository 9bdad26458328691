"""Rooms in PostgreSQL: several gateways on one database serve and edit the same rooms, with the YAML of files."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.bootstrap_studio import build_room_store
from tests.integration.conftest import Serve
from tests.integration.test_rooms import client_of, create, model_ids
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


def test_rooms_in_a_database_need_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="AGENT_ROOM_STORE: set AGENT_DATABASE_URL"):
        build_room_store(Settings(_env_file=None, data_dir=tmp_path, room_store="database"))
