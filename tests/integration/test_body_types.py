"""Bodies that are not JSON: refused at every door before anything is done, and told what to send."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_origin_check import CALL, PROMPT, client_at, exchange, message_of

DOORS = (
    "/v1/agent", "/v1/chat/completions", "/v1/responses", "/v1/ag-ui", "/a2a", "/mcp", "/mcp/all", "/v1/rooms",
    "/tasks", "/v1/search", "/v1/runs/run_1/approve", "/v1/runs/run_1/cancel", "/v1/schedules/none/run",
)  # fmt: skip
FORM = b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.md"\r\n\r\nIt rains.\r\n--b--\r\n'


async def in_parts(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.mark.parametrize("path", DOORS)
async def test_a_body_needs_the_type_json_at_every_door(serve: Serve, path: str) -> None:
    body = json.dumps(CALL).encode()
    kinds = (
        "text/plain", "text/plain;charset=UTF-8", "text/plain; application/json", "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=b", "application/jsonp", "application/json+x", "application/json, text/plain",
        "json", "", "application/octet-stream", "x" * 5000,
    )  # fmt: skip
    async with client_at(serve) as client:
        for kind in kinds:
            refused = await client.post(path, content=body, headers={"content-type": kind})
            assert refused.status_code == 415, kind
            assert "content-type: application/json" in message_of(refused)
        for headers in ({}, {"content-type": "text/plain"}):
            refused = await client.post(path, content=in_parts(b"", b"{", body[1:]), headers=headers)
            assert refused.status_code == 415
        twice = [("content-type", "application/json"), ("content-type", "text/plain")]
        assert (await client.post(path, content=body, headers=twice)).status_code == 415
        for kind in ("application/json", "APPLICATION/json ; charset=utf-8", "application/vnd.api+json"):
            accept = {"accept": "application/json, text/event-stream", "content-type": kind}
            taken = await client.post(path, content=body, headers=accept)
            assert taken.status_code != 415, taken.text
        assert (await client.get("/v1/runs")).status_code == 200


async def test_an_empty_body_needs_no_type(serve: Serve) -> None:
    async with client_at(serve) as client:
        task = (await client.post("/tasks", json=PROMPT)).json()["task_id"]
        for content in (None, b"", in_parts(), in_parts(b"")):
            started = await client.post(f"/tasks/{task}/run", content=content)
            assert started.status_code in (200, 202, 409), started.text
        typed = await client.post("/v1/runs/none/cancel", content=b"", headers={"content-type": "text/plain"})
        assert typed.status_code == 404
        told = await client.post("/mcp", content=b"", headers={"accept": "application/json, text/event-stream"})
        assert (told.status_code, "The body is empty" in message_of(told)) == (400, True)
        assert (await client.request("GET", "/v1/runs", content=b"x")).status_code == 200, "nothing reads it"


async def test_forms_are_taken_where_files_are_uploaded(serve: Serve) -> None:
    form = {"content-type": "multipart/form-data; boundary=b"}
    async with client_at(serve) as client:
        whole = await client.post("/v1/documents", content=FORM, headers=form)
        parts = await client.post("/v1/documents", content=in_parts(FORM[:50], FORM[50:]), headers=form)
        kinds = ("text/plain", "application/x-www-form-urlencoded", "application/json", "multipart/mixed; boundary=b")
        refused = [await client.post("/v1/documents", content=FORM, headers={"content-type": kind}) for kind in kinds]
    assert (whole.status_code, parts.status_code) == (201, 200)
    assert [response.status_code for response in refused] == [415] * 4
    assert all("multipart/form-data" in message_of(response) for response in refused)


async def test_a_body_without_a_type_that_never_comes_is_cut_off(serve: Serve) -> None:
    head = b"POST /v1/runs/none/cancel HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with serve(body_seconds=0.4) as url:
        status, text = await exchange(httpx.URL(url), head)
        whole, _ = await exchange(httpx.URL(url), head + b"0\r\n\r\n")
    assert status == 408
    assert "the request body did not arrive within 0.4 seconds" in text
    assert whole == 404
