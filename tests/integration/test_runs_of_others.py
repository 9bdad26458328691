"""Who reads whose runs: an owner their own, a key with the scope `admin` all, a caller without a key no other's."""

from pathlib import Path

import httpx

from tests.integration.conftest import Serve
from tests.integration.test_approval_doors import rooms
from tests.integration.test_openai_door import MODEL
from tests.support.keys import bearer, created_key

__all__ = ["rooms"]  # a fixture


async def test_an_admin_lists_and_reads_the_runs_of_others(serve: Serve, tmp_path: Path) -> None:
    options = {"require_key": "always", "keep_prompts": 7}
    async with serve(MODEL, **options) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        anna = bearer(await created_key(tmp_path / "data", "a", owner="anna"))
        bob = bearer(await created_key(tmp_path / "data", "b", owner="bob"))
        chief = bearer(await created_key(tmp_path / "data", "c", owner="chief", scopes="admin"))
        runs = [
            (await client.post("/v1/agent", json={"prompt": "2+2"}, headers=one)).json()["metadata"]["run_id"]
            for one in (anna, bob)
        ]

        async def listed(headers: dict[str, str], **query: str) -> list[tuple[str, str]]:
            answer = await client.get("/v1/runs", params=query, headers=headers)
            assert answer.status_code == 200, answer.text
            return [(one["id"], one["owner"]) for one in answer.json()["data"]]

        assert await listed(chief) == []
        assert await listed(chief, owner="anna") == [(runs[0], "anna")]
        assert await listed(chief, owner="nobody") == []
        assert await listed(chief, owner="*") == [(runs[1], "bob"), (runs[0], "anna")]
        assert await listed(chief, owner="*", before=runs[1]) == [(runs[0], "anna")]
        assert await listed(chief, owner="anna", before=runs[1]) == [], "a place in another's list is none in this"
        assert await listed(bob, owner="bob") == [(runs[1], "bob")]
        for owner in ("*", "anna"):
            refused = await client.get("/v1/runs", params={"owner": owner}, headers=bob)
            assert refused.status_code == 403
        for path in ("", "/events", "/prompts"):
            assert (await client.get(f"/v1/runs/{runs[0]}{path}", headers=chief)).status_code == 200
            assert (await client.get(f"/v1/runs/{runs[0]}{path}", headers=bob)).status_code == 404
        assert (await client.post(f"/v1/runs/{runs[0]}/cancel", headers=chief)).status_code == 404, "reading only"


async def test_reading_the_runs_of_others_is_in_the_audit_record(serve: Serve, tmp_path: Path) -> None:
    async with serve(MODEL, require_key="always") as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        anna = bearer(await created_key(tmp_path / "data", "a", owner="anna"))
        chief = bearer(await created_key(tmp_path / "data", "c", owner="chief", scopes="admin,agent"))
        hers, own = [
            (await client.post("/v1/agent", json={"prompt": "2+2"}, headers=one)).json()["metadata"]["run_id"]
            for one in (anna, chief)
        ]

        async def list_records() -> list[tuple[str, str, str, str]]:
            answer = await client.get("/v1/audit", params={"action": "run"}, headers=chief)
            return [
                (one["action"], one["target"], one["owner"], one["detail"].get("part", ""))
                for one in reversed(answer.json()["data"])
            ]

        await client.get("/v1/runs", headers=chief)
        await client.get(f"/v1/runs/{own}", headers=chief)
        await client.get(f"/v1/runs/{hers}", headers=anna)
        assert await list_records() == [], "one's own"
        await client.get("/v1/runs?owner=anna&query=secret", headers=chief)
        await client.get("/v1/runs?owner=*", headers=chief)
        for part in ("", "/events", "/prompts", "/artifacts/none.png"):
            await client.get(f"/v1/runs/{hers}{part}", headers=chief)
        assert await list_records() == [
            ("run.list", "anna", "anna", ""), ("run.list", "*", "*", ""), ("run.read", hers, "anna", "run"),
            ("run.read", hers, "anna", "events"), ("run.read", hers, "anna", "prompts"),
            ("run.read", hers, "anna", "artifact"),
        ]  # fmt: skip
        [*_, record] = (await client.get("/v1/audit", params={"action": "run.read"}, headers=chief)).json()["data"]
        assert record["principal"].startswith("chief")


async def test_a_caller_without_a_key_reads_the_runs_of_this_machine_only(serve: Serve, tmp_path: Path) -> None:
    async with serve(MODEL, keep_prompts=7) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        anna = bearer(await created_key(tmp_path / "data", "a", owner="anna"))
        asked = {"prompt": "2+2"}
        hers = (await client.post("/v1/agent", json=asked, headers=anna)).json()["metadata"]["run_id"]
        own = (await client.post("/v1/agent", json=asked)).json()["metadata"]["run_id"]
        assert [one["id"] for one in (await client.get("/v1/runs?owner=local")).json()["data"]] == [own]
        for owner in ("*", "anna"):
            refused = await client.get("/v1/runs", params={"owner": owner})
            assert (refused.status_code, "--scopes admin" in refused.json()["error"]["message"]) == (403, True)
        for path in ("", "/events", "/prompts", "/artifacts/a.txt"):
            assert (await client.get(f"/v1/runs/{hers}{path}")).status_code == 404, path
            assert (await client.get(f"/v1/runs/{own}{path}")).status_code == (404 if "artifacts" in path else 200)


async def test_an_admin_sees_what_others_are_asked_and_leaves_it_to_them(
    serve: Serve, rooms: Path, tmp_path: Path
) -> None:
    """`chief` sees each question with its owner, once in the record, and cannot decide on it."""
    async with (
        serve(MODEL, require_key="always", rooms_dir=rooms) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        anna = bearer(await created_key(tmp_path / "data", "a", owner="anna", scopes="chat,agent,approve"))
        bob = bearer(await created_key(tmp_path / "data", "b", owner="bob", scopes="chat,agent"))
        chief = bearer(await created_key(tmp_path / "data", "c", owner="chief", scopes="admin"))
        for headers in (anna, bob):
            asked = await client.post("/v1/agent", json={"prompt": "6*7", "room": "careful"}, headers=headers)
            assert asked.json()["metadata"]["status"] == "awaiting_approval", asked.text

        async def listed(headers: dict[str, str], **query: str) -> list[dict[str, str]]:
            answer = await client.get("/v1/approvals", params=query, headers=headers)
            assert answer.status_code == 200, answer.text
            data: list[dict[str, str]] = answer.json()["data"]
            return data

        assert [one["owner"] for one in await listed(anna)] == ["anna"]
        assert await listed(chief) == []
        assert [one["owner"] for one in await listed(chief, owner="anna")] == ["anna"]
        for _ in range(3):
            waiting = await listed(chief, owner="*")
        assert [one["owner"] for one in waiting] == ["bob", "anna"]
        assert (await client.get("/v1/approvals?owner=*", headers=anna)).status_code == 403
        read = (await client.get("/v1/audit?action=run.read", headers=chief)).json()["data"]
        assert sorted(one["owner"] for one in read) == ["anna", "bob"], "each question once, however often it is listed"

        his = waiting[0]
        decision = {"approvals": [his["id"]]}
        for headers in (anna, bob, chief):
            refused = await client.post(f"/v1/runs/{his['run_id']}/approve", json=decision, headers=headers)
            assert refused.status_code == (403 if headers is bob else 404)
        assert [one["owner"] for one in await listed(chief, owner="*")] == ["bob", "anna"]


async def test_without_a_key_nobody_decides_for_others(serve: Serve, rooms: Path, tmp_path: Path) -> None:
    async with serve(MODEL, rooms_dir=rooms) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        anna = bearer(await created_key(tmp_path / "data", "a", owner="anna"))
        await client.post("/v1/agent", json={"prompt": "6*7", "room": "careful"}, headers=anna)
        [hers] = (await client.get("/v1/approvals", headers=anna)).json()["data"]
        assert (await client.get("/v1/approvals?owner=*")).status_code == 403
        refused = await client.post(f"/v1/runs/{hers['run_id']}/approve", json={"approvals": [hers["id"]]})
        assert refused.status_code == 404
