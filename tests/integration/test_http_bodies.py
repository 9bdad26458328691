"""Bodies as clients get them wrong: too large, compressed, half written, misspelt. Over raw HTTP, at every door."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.integration.conftest import Serve

JSON = {"content-type": "application/json"}
DOORS = ("/v1/agent", "/v1/chat/completions")


async def in_parts(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def error_message(response: httpx.Response) -> str:
    """What a response says went wrong, whatever its door's shape."""
    told: str = response.json()["error"]["message"]
    return told


@pytest.mark.parametrize("path", [*DOORS, "/mcp"])
@pytest.mark.parametrize("parts", [(5_000_001,), (5_000_000, 1), (1, 5_000_000), (5_000_000, 3_000_000)], ids=str)
async def test_a_chunked_body_over_the_limit_is_413_in_the_doors_shape(
    serve: Serve, path: str, parts: tuple[int, ...]
) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        body = in_parts(*(b"x" * size for size in parts))
        response = await client.post(f"{url}{path}", content=body, headers=JSON)
        alive = await client.get(f"{url}/health")
    assert response.status_code == 413
    assert "5,000,000 bytes (AGENT_MAX_BODY_BYTES)" in error_message(response)
    error = response.json()["error"]
    if path == "/mcp":
        assert (response.json()["jsonrpc"], error["code"]) == ("2.0", -32600)
    elif path == "/v1/agent":
        assert error["error_code"] == "ERR_TOO_LARGE"
    else:
        assert error["code"] == "request_too_large"
    assert response.headers["x-request-id"]
    assert alive.status_code == 200


async def test_clients_that_leave_in_the_middle_of_a_body_harm_nothing(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    head = "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{length}\r\n\r\n"
    async with serve(max_body_bytes=1000) as url, httpx.AsyncClient(timeout=15) as client:
        for path in (*DOORS, "/mcp"):
            for length, body in (
                ("transfer-encoding: chunked", b"800\r\n" + b"x" * 0x800),
                ("content-length: 5000", b"x" * 2000),
                ("content-length: 500", b"x" * 10),
            ):
                _, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
                writer.write(head.format(path=path, length=length).encode() + body)
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        alive = await client.get(f"{url}/health")
    assert alive.status_code == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


BROKEN_BODIES: list[tuple[bytes, str]] = [
    (b"", "The body is empty"),
    (b'{"prompt": "x"', "not valid JSON: expecting ',' delimiter at line 1, column 15."),
    (b'{"prompt":\n  "x",}', "at line 2, column "),
    (b"{'prompt': 1}", "at line 1, column 2."),
    (b'{"prompt": "\x01"}', "invalid control character at line 1, column 13."),
    (b'{"prompt": "\xff"}', "not UTF-8: byte 0xff at position 12."),
    ('{"prompt": "x"}'.encode("utf-16"), "not UTF-8"),
    (b'["x"]', "must be a JSON object, not a list."),
    (b"null", "must be a JSON object, not null."),
    (b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", "nested more than 100 levels deep."),
    (b"[" * 1_000_000, "nested more than 100 levels deep."),
    (b'{"a": ' + b"9" * 5000 + b"}", "a number with too many digits."),
    (b'{"a": "NaN",\n"temperature": NaN}', "NaN is not a finite number at line 2, column 16."),
    (b'{"temperature": -Infinity}', "-Infinity is not a finite number at line 1, column 17."),
    (b'{"temperature": 1e999}', "1e999 is not a finite number at line 1, column 17."),
]


@pytest.mark.parametrize("path", DOORS)
async def test_a_broken_body_is_400_and_told_with_its_place(serve: Serve, path: str) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        for body, told in BROKEN_BODIES:
            response = await client.post(f"{url}{path}", content=body, headers=JSON)
            assert response.status_code == 400, told
            assert told in error_message(response)
            assert ("error_code" in response.json()["error"]) == (path == "/v1/agent")


@pytest.mark.parametrize("path", DOORS)
async def test_a_body_that_is_no_plain_json_is_415(serve: Serve, path: str) -> None:
    body = b'{"model": "chat", "prompt": "2+2"}'
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        packed = await client.post(
            f"{url}{path}", content=gzip.compress(body), headers={**JSON, "content-encoding": "gzip"}
        )
        form = await client.post(
            f"{url}{path}", content=body, headers={"content-type": "application/x-www-form-urlencoded"}
        )
        bare = await client.post(f"{url}{path}", content=body)
    assert [response.status_code for response in (packed, form, bare)] == [415] * 3
    assert "content-encoding: gzip); send it uncompressed" in error_message(packed)
    assert "`application/x-www-form-urlencoded`; send JSON with `content-type: application/json`" in error_message(form)
    assert "without a content type" in error_message(bare)
    native, openai = packed.json()["error"].get("error_code"), packed.json()["error"].get("code")
    assert (native or openai) == ("ERR_MEDIA_TYPE" if path == "/v1/agent" else "unsupported_content_type")


async def test_every_spelling_of_json_and_a_hundred_levels_are_taken(serve: Serve) -> None:
    nested: Any = "x"
    for _ in range(98):
        nested = [nested]
    body = json.dumps({"prompt": "2+2", "metadata": {"deep": nested}}).encode()
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        for kind in ("application/json; charset=utf-8", "Application/JSON", "application/vnd.api+json"):
            response = await client.post(f"{url}/v1/agent", content=body, headers={"content-type": kind})
            assert response.status_code == 200, response.text
        marked = await client.post(f"{url}/v1/agent", content=b"\xef\xbb\xbf" + body, headers=JSON)
    assert marked.json()["metadata"]["deep"] == nested


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("rom", "Did you mean 'room'?"),
        ("model", "Did you mean 'room'?"),
        ("promt", "Did you mean 'prompt'?"),
        ("tools", "Did you mean 'metadata.tools'?"),
        ("conversationId", "Did you mean 'conversation_id'?"),
        ("qqq", "The fields are prompt, conversation_id, session_id, metadata,"),
    ],
)
async def test_an_unknown_field_is_named_with_the_one_that_was_meant(serve: Serve, field: str, hint: str) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        response = await client.post(f"{url}/v1/agent", json={"prompt": "2+2", field: "chat"})
        listed = (await client.get(f"{url}/v1/runs")).json()["data"]
    assert response.status_code == 400
    assert error_message(response).startswith(f"Unknown field: '{field}'. {hint}")
    assert response.json()["error"]["details"] == {"param": field}
    assert listed == [], "nothing was begun"


@pytest.mark.parametrize(
    ("path", "body", "hint"),
    [
        ("/tasks", {"prompt": "x", "contxt": {}}, "Did you mean 'context'?"),
        ("/v1/runs/r/approve", {"approval": []}, "Did you mean 'approvals'?"),
        ("/v1/studio/tools", {"description": "x", "permission": None}, "Did you mean 'permissions'?"),
    ],
)
async def test_other_doors_name_an_unknown_field_too(
    serve: Serve, path: str, body: dict[str, object], hint: str
) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        response = await client.post(f"{url}{path}", json=body)
        first_fault = await client.post(f"{url}/v1/runs/r/approve", json={"approval": [], "plan": 7})
    assert response.status_code == 400
    assert error_message(response).startswith("Unknown field: ")
    assert error_message(response).endswith(hint)
    assert "plan" in error_message(first_fault), "a known field without a usable value is named first"


async def test_native_errors_hold_what_is_known_and_one_form_of_time(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        errors = [
            (await client.post(f"{url}/v1/agent", json={"prompt": 7})).json()["error"],
            (await client.post(f"{url}/v1/agent", json={"prompt": "x", "room": "nope"})).json()["error"],
            (await client.post(f"{url}/v1/agent", content=b"{", headers=JSON)).json()["error"],
            (await client.get(f"{url}/nope")).json()["error"],
            (await client.delete(f"{url}/v1/agent")).json()["error"],
        ]
    assert [error["details"] for error in errors] == [{"param": "prompt"}, {"room": "nope"}, {}, {}, {}]
    for error in errors:
        assert error["timestamp"][10] == "T"
        assert error["timestamp"].endswith("Z")
        assert datetime.fromisoformat(error["timestamp"]).tzinfo is not None


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        ("GET", "/v1/runs?limit=abc", None, "Invalid value for 'limit': write a whole number, not 'abc'."),
        ("GET", "/v1/usage?since=yesterday", None, "Invalid value for 'since': write a date and time"),
        ("POST", "/v1/agent", {"prompt": 5}, "Invalid value for 'prompt': write a text, not 5."),
        ("POST", "/v1/agent", {"prompt": "x", "messages": ["s"]}, "'messages[0]': write a map of names and values"),
        ("POST", "/v1/agent", {"prompt": "x", "metadata": "s"}, "'metadata': write a map of names and values"),
        ("POST", "/v1/studio/requests", {"message": ""}, "'message': it must have at least 1 character"),
        ("POST", "/v1/ag-ui", {}, "threadId: it is missing"),
    ],
)
async def test_a_wrong_value_is_refused_with_what_to_write(
    serve: Serve, method: str, path: str, body: dict[str, Any] | None, told: str
) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        response = await client.request(method, f"{url}{path}", json=body)
    assert response.status_code == 400
    assert told in error_message(response)
