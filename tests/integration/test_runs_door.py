"""Replaying a run: from any point, past its end, and from points that are no points."""

import httpx
import pytest

from tests.integration.conftest import Serve


async def finished_run(client: httpx.AsyncClient) -> tuple[str, int]:
    """A finished run's id, and the seq of its last event."""
    response = await client.post("/v1/agent", json={"prompt": "what is 2 + 3?"})
    run_id = response.json()["metadata"]["run_id"]
    row = (await client.get(f"/v1/runs/{run_id}")).json()
    assert row["status"] == "succeeded"
    return run_id, row["last_seq"]


async def test_a_client_that_has_seen_the_end_is_told_to_stop_reconnecting(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        run_id, last = await finished_run(client)
        run = (await client.get(f"/v1/runs/{run_id}")).json()
        assert run["created_at"] <= run["claimed_at"] <= run["updated_at"]
        for seen in (last, last + 1, 10**15):
            response = await client.get(f"/v1/runs/{run_id}/events", headers={"last-event-id": str(seen)})
            assert (response.status_code, response.content) == (204, b"")
            assert response.headers["x-request-id"]
            after = await client.get(f"/v1/runs/{run_id}/events", params={"after": seen})
            assert after.status_code == 204


@pytest.mark.row("S002-31")
async def test_a_run_that_did_not_do_what_was_asked_is_listed_and_counted_as_partial(serve: Serve) -> None:
    broken = {"prompt": "", "metadata": {"tool_calls": [{"tool": "calculator", "args": {"expression": "1/0"}}]}}
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        whole, _ = await finished_run(client)
        answer = (await client.post("/v1/agent", json=broken)).json()
        partial = answer["metadata"]["run_id"]
        listed = {
            status: [run["id"] for run in (await client.get("/v1/runs", params={"status": status})).json()["data"]]
            for status in ("succeeded", "partial")
        }
        run = (await client.get(f"/v1/runs/{partial}")).json()
        again = await client.get(
            f"/v1/runs/{partial}/events", params={"after": run["last_seq"]}, headers={"accept": "text/event-stream"}
        )
        metrics = (await client.get("/metrics")).text
    assert answer["metadata"]["status"] == "partial"
    assert listed == {"succeeded": [whole], "partial": [partial]}
    assert (run["status"], again.status_code) == ("partial", 204)
    assert 'stepgate_runs_total{room="stepgate",status="partial"} 1' in metrics


async def test_a_client_that_missed_only_the_end_gets_it(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        run_id, last = await finished_run(client)
        response = await client.get(f"/v1/runs/{run_id}/events", headers={"last-event-id": str(last - 1)})
    assert response.status_code == 200
    assert response.text.startswith(f"event: run.succeeded\nid: {last}\n")


async def test_a_list_of_events_past_the_end_is_empty(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        run_id, last = await finished_run(client)
        response = await client.get(
            f"/v1/runs/{run_id}/events", params={"after": last + 5}, headers={"accept": "application/json"}
        )
    assert (response.status_code, response.json()) == (200, {"data": []})


@pytest.mark.parametrize(
    "seen", [b"x", b"-1", b"1.5", "\u00b2".encode("latin-1"), b"9" * 30, b"9" * 5000, b"run_1"], ids=repr
)
async def test_a_last_event_id_that_is_no_seq_is_refused_by_name(serve: Serve, seen: bytes) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        run_id, _ = await finished_run(client)
        response = await client.get(f"/v1/runs/{run_id}/events", headers={b"last-event-id": seen})
    error = response.json()["error"]
    assert response.status_code == 400
    assert error["error_code"] == "ERR_BAD_REQUEST"
    assert error["details"]["param"] == "last-event-id"
    assert len(error["message"]) < 300


@pytest.mark.parametrize("after", ["-1", "x", "9" * 30])
async def test_a_position_that_is_no_seq_is_refused(serve: Serve, after: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        run_id, _ = await finished_run(client)
        response = await client.get(f"/v1/runs/{run_id}/events", params={"after": after})
    assert response.status_code == 400
    assert response.json()["error"]["error_code"] == "ERR_BAD_REQUEST"


async def test_a_run_in_which_nothing_was_done_says_so(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        for prompt in ("Book me a flight to Rome", "6*7"):
            assert (await client.post("/v1/agent", json={"prompt": prompt})).status_code == 200
        listed = (await client.get("/v1/runs")).json()["data"]
        shown = [(await client.get(f"/v1/runs/{run['id']}")).json() for run in listed]
    for runs in (listed, shown):
        assert [(run["title"], run["status"], run["did_nothing"]) for run in runs] == [
            ("6*7", "succeeded", False), ("Book me a flight to Rome", "partial", True),
        ]  # fmt: skip
