"""What foreign web pages and foreign names can do with a gateway that needs no key: nothing. Programs work as ever."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.keys import bearer, created_key

PROMPT = {"prompt": "What is 2*21?"}
ROOM = {"name": "Hole", "mcp_servers": [{"name": "hole", "command": "touch", "args": ["/tmp/never"]}]}
EVIL = "http://evil.example"
CROSS_SITE = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "empty"}
NAVIGATION = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
TEXT = {"content-type": "text/plain;charset=UTF-8"}
CALL = {
    "jsonrpc": "2.0", "id": 1, "method": "message/send",
    "params": {"message": {"kind": "message", "messageId": "m1", "role": "user",
                           "parts": [{"kind": "text", "text": "What is 2*21?"}]}},
}  # fmt: skip


@asynccontextmanager
async def client_at(serve: Serve, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(**options) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        yield client


def port_of(client: httpx.AsyncClient) -> int:
    port = client.base_url.port
    assert port is not None
    return port


def message_of(response: httpx.Response) -> str:
    told: str = response.json()["error"]["message"]
    return told


async def exchange(url: httpx.URL, request: bytes) -> tuple[int, str]:
    """The status and the rest of what is answered to bytes that no client library would send."""
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(request)
    async with asyncio.timeout(20):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
        body = await reader.readexactly(int(length.partition(b":")[2]))
    writer.close()
    return int(head.split(b" ")[1]), (head + body).decode("latin-1")


async def count_things(client: httpx.AsyncClient) -> dict[str, int]:
    """How many things of each kind there are, as a program sees them."""
    paths = ("/v1/runs", "/v1/rooms", "/v1/documents", "/v1/jobs", "/tasks", "/v1/memories")
    return {path: len((await client.get(path)).json()["data"]) for path in paths}


async def test_a_page_whose_name_is_pointed_here_reads_and_changes_nothing(serve: Serve) -> None:
    async with client_at(serve) as client:
        assert (await client.post("/v1/agent", json=PROMPT)).status_code == 200
        before = await count_things(client)
        # What a browser sends: such a page is of the same origin, and its address is not one that gets `Sec-Fetch-*`.
        host = f"evil.example:{port_of(client)}"
        rebound, posted = {"host": host}, {"host": host, "origin": f"http://{host}"}
        reads = [
            await client.get(path, headers=rebound)
            for path in ("/", "/v1/runs", "/v1/tools", "/web/app.js", "/openapi.json", "/nothing", "/metrics",
                         "/.well-known/agent-card.json", "/mcp", "/mcp/lookup")
        ]  # fmt: skip
        changes = [
            await client.post("/v1/rooms", json=ROOM, headers=posted),
            await client.post("/v1/agent", json=PROMPT, headers=posted),
            await client.post("/v1/ag-ui", json={}, headers=posted),
            await client.post("/v1/documents", files={"file": b"x"}, headers=posted),
            await client.post("/a2a", json=CALL, headers=posted),
            await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=posted),
            await client.delete("/v1/users/local", headers=posted),
        ]
        after = await count_things(client)
    assert [response.status_code for response in (*reads, *changes)] == [421] * (len(reads) + len(changes))
    assert all("AGENT_ALLOWED_HOSTS" in message_of(response) for response in (*reads, *changes))
    assert all(response.headers["x-request-id"] for response in (*reads, *changes))
    assert after == before


async def test_a_page_of_another_origin_starts_nothing(serve: Serve) -> None:
    async with client_at(serve) as client:
        before = await count_things(client)
        for origin in (
            EVIL,
            "null",
            "http://127.0.0.1:1",
            "http://localhost:3000",
            f"http://localhost:{port_of(client)}",
        ):
            page = {"origin": origin}
            refused = [
                await client.post("/a2a", content=json.dumps(CALL), headers={**TEXT, **page}),
                await client.post("/a2a", json=CALL, headers=page),
                await client.post("/v1/documents", files={"file": b"x"}, headers=page),
                await client.post("/v1/rooms", content=json.dumps(ROOM), headers={**TEXT, **page}),
                await client.post("/v1/agent", json=PROMPT, headers=page),
                await client.get("/v1/runs", headers=page),
                await client.get("/health", headers=page),
                await client.post("/mcp", json={}, headers=page),
                await client.get("/nothing", headers=page),
            ]
            assert [response.status_code for response in refused] == [403] * len(refused), origin
            assert all("AGENT_CORS_ORIGINS" in message_of(response) for response in refused)
            assert not any("access-control-allow-origin" in response.headers for response in refused)
        # Without an origin, by which nothing is known of the sender, the type alone refuses it.
        typed = await client.post("/a2a", content=json.dumps(CALL), headers=TEXT)
        assert await count_things(client) == before
    assert typed.status_code == 415
    assert "`text/plain`; send JSON" in message_of(typed)


async def test_requests_without_a_body_are_not_carried_out_for_another_site(serve: Serve) -> None:
    async with client_at(serve) as client:
        task = (await client.post("/tasks", json=PROMPT)).json()["task_id"]
        made = {"name": "nightly", "cron": "0 3 * * *", "prompt": "What is 2*21?"}
        assert (await client.post("/v1/schedules", json=made)).status_code == 201
        upload: dict[str, Any] = {
            "files": {"file": ("a.md", b"# Rain\n\nIt rains on Monday.")},
            "data": {"collection": "weather"},
        }
        assert (await client.post("/v1/documents", **upload)).status_code == 201
        before = await count_things(client)
        paths = ("/v1/schedules/nightly/run", "/v1/collections/weather/reindex", f"/tasks/{task}/run")
        for sent in ({"origin": EVIL}, CROSS_SITE, {"sec-fetch-site": "same-site"}, {**CROSS_SITE, "origin": "null"}):
            for path in paths:
                assert (await client.post(path, headers=sent)).status_code == 403, (path, sent)
            multipart = await client.post("/v1/documents", files={"file": b"x"}, headers=sent)
            assert multipart.status_code == 403
        assert await count_things(client) == before
        for path in paths:
            accepted = await client.post(path)
            assert accepted.status_code in (200, 202), accepted.text


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"user-agent": "curl/8.5", "accept": "*/*"},
        {"sec-fetch-mode": "cors", "accept-language": "*", "user-agent": "node"},
        {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"},
        {"sec-fetch-site": "none"},
        {"authorization": "Bearer none"},
        {"host": "host.docker.internal:8080"},
        {"host": "LOCALHOST."},
        {"host": "app.localhost:1"},
        {"host": "192.168.1.7"},
        {"host": "[fd00::5]:8080"},
    ],
    ids=str,
)
async def test_programs_and_the_own_page_are_accepted(serve: Serve, headers: dict[str, str]) -> None:
    """Node's `fetch` sends `Sec-Fetch-Mode` and nothing else of the kind."""
    async with client_at(serve) as client:
        answered = await client.post("/v1/agent", json=PROMPT, headers=headers)
        listed = await client.get("/v1/runs", headers=headers)
        mcp = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        accept = {"accept": "application/json, text/event-stream"}
        pinged = await client.post("/mcp", json=mcp, headers=headers | accept)
    assert (answered.status_code, listed.status_code) == (200, 200), answered.text
    assert pinged.status_code < 402
    assert "access-control-allow-origin" not in listed.headers


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        ([b"localhost"], 200),
        ([b"localhost:1"], 200),
        ([b"[::1]:8080"], 200),
        ([b"gate.lan:8443"], 200),
        ([b"GATE.lan.:8443"], 200),
        ([b"gate.lan"], 421),
        ([b"gate.lan:8444"], 421),
        ([b"sub.gate.lan:8443"], 421),
        ([b"evil.example"], 421),
        ([b"localhost.evil.example"], 421),
        ([b"notlocalhost"], 421),
        ([b"127.0.0.1.evil.example"], 421),
        ([], 400),
        ([b""], 400),
        ([b"localhost", b"localhost"], 400),
        ([b"localhost", b"evil.example"], 400),
        ([b"user@localhost"], 400),
        ([b"local host"], 400),
        ([b"localhost, evil.example"], 400),
        ([b"localhost:99999"], 400),
        (["löcalhost".encode()], 400),
    ],
    ids=str,
)
async def test_exactly_one_host_is_read_exactly(serve: Serve, hosts: list[bytes], status: int) -> None:
    lines = b"".join(b"Host: " + host + b"\r\n" for host in hosts)
    async with serve(allowed_hosts=("Gate.lan:8443",)) as url:
        for version in (b"1.1", b"1.0"):
            got, text = await exchange(httpx.URL(url), b"GET /v1/runs HTTP/" + version + b"\r\n" + lines + b"\r\n")
            assert got == status, text
            probed, _ = await exchange(httpx.URL(url), b"GET /health HTTP/" + version + b"\r\n" + lines + b"\r\n")
            assert probed == 200, "probes come by any name"


async def test_a_valid_key_passes_with_any_single_host(serve: Serve, tmp_path: Path) -> None:
    key = await created_key(tmp_path / "data", "laptop")
    foreign = {"host": "stepgate:8080"}
    for require in ("never", "always"):
        async with client_at(serve, require_key=require) as client:
            for held in (bearer(key), {"x-api-key": key}):
                assert (await client.get("/v1/runs", headers=foreign | held)).status_code == 200
            for held in (bearer("sg_00000000_none"), bearer("none"), {"x-api-key": "x"}, {}):
                assert (await client.get("/v1/runs", headers=foreign | held)).status_code == 421, held
            mixed = await client.get("/v1/runs", headers={**foreign, **bearer(key), "origin": EVIL})
            assert mixed.status_code == 403
            twice = (
                b"GET /v1/runs HTTP/1.1\r\nHost: a\r\nHost: b\r\nAuthorization: Bearer " + key.encode() + b"\r\n\r\n"
            )
            assert (await exchange(client.base_url, twice))[0] == 400


async def test_probes_answer_to_every_host_and_show_it_no_details(serve: Serve) -> None:
    async with client_at(serve) as client:
        for path in ("/health", "/ready", "/healthz", "/readyz"):
            for host in ("evil.example", "10.0.0.7:8080", "stepgate-7d9f.default"):
                assert (await client.get(path, headers={"host": host})).status_code == 200
        own, foreign = (
            (await client.get("/ready")).json(),
            (await client.get("/ready", headers={"host": "evil"})).json(),
        )
    assert own["components"]["store"]["detail"] != ""
    assert {item["detail"] for item in foreign["components"].values()} == {""}


async def test_a_page_opened_by_a_wrong_name_says_what_to_set(serve: Serve) -> None:
    async with client_at(serve) as client:
        accept = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
        page = await client.get("/", headers={"host": "gate.lan:8080", **accept})
        form = await client.post("/v1/agent", data={"prompt": "x"}, headers={"origin": EVIL, **accept})
        odd = await client.get("/", headers={"host": "<script>", **accept})
        home = await client.get("/", headers=NAVIGATION | accept)
    assert (page.status_code, form.status_code, odd.status_code) == (421, 403, 400)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "gate.lan" in page.text
    assert "AGENT_ALLOWED_HOSTS" in page.text
    assert "AGENT_PUBLIC_URL" in page.text
    assert "AGENT_CORS_ORIGINS" in form.text
    assert "<script>" not in odd.text
    assert home.status_code == 200
    assert "<title>Stepgate" in home.text


async def test_a_link_on_another_site_can_be_followed_and_nothing_else(serve: Serve) -> None:
    async with client_at(serve) as client:
        assert (await client.get("/v1/runs", headers=NAVIGATION)).status_code == 200
        for change in (
            {"sec-fetch-dest": "iframe"}, {"sec-fetch-dest": "image"}, {"sec-fetch-mode": "no-cors"},
            {"sec-fetch-mode": "cors"}, {"origin": EVIL}, {"sec-fetch-dest": ""},
        ):  # fmt: skip
            assert (await client.get("/v1/runs", headers=NAVIGATION | change)).status_code == 403, change
        assert (await client.post("/v1/agent", json=PROMPT, headers=NAVIGATION)).status_code == 403


async def test_a_websocket_of_another_origin_is_refused(serve: Serve) -> None:
    shake = (
        "GET /v1/runs HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nOrigin: {origin}\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    async with serve() as url:
        own = urlsplit(url).netloc
        for host, origin, status in ((own, EVIL, 403), ("evil.example", EVIL, 421), (own, f"http://{own}", 200)):
            got, _ = await exchange(httpx.URL(url), shake.format(host=host, origin=origin).encode())
            assert got == status


APP, PANEL = "https://app.example.org", "vscode-webview://1a2b3c"


async def test_pages_of_allowed_origins_get_cors_answers(serve: Serve) -> None:
    allowed = {"cors_origins": (f"{APP}/", PANEL), "public_url": "https://gate.example.org/stepgate"}
    async with client_at(serve, require_key="never", **allowed) as client:
        for origin in (APP, PANEL, "https://gate.example.org"):
            page = {"origin": origin, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
            asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,x-a"}
            for path in ("/mcp", "/v1/agent", "/a2a", "/nothing"):
                preflight = await client.options(path, headers=page | asked)
                assert (preflight.status_code, preflight.content) == (204, b"")
                assert preflight.headers["access-control-allow-origin"] == origin
                assert preflight.headers["access-control-allow-headers"] == "authorization,x-a"
                assert {"POST", "DELETE"} <= set(preflight.headers["access-control-allow-methods"].split(", "))
                assert "origin" in preflight.headers["vary"].lower()
            got = [
                await client.post("/v1/agent", json=PROMPT, headers=page),
                await client.get("/v1/runs/none", headers=page),
                await client.post("/v1/agent", content=b"x" * 6_000_000, headers=page),
            ]
            assert [response.status_code for response in got] == [200, 404, 413]
            for response in got:
                assert response.headers.get_list("access-control-allow-origin") == [origin]
                exposed = response.headers["access-control-expose-headers"].lower().split(", ")
                assert {"mcp-session-id", "x-request-id"} <= set(exposed)
        plain = await client.get("/v1/runs")
        for origin in (f"{APP}:8443", f"{APP}.evil.example", "http://app.example.org", "vscode-webview://1a2b", "*",
                       "https://APP.example.org", f"{APP}/", f"{APP}, {EVIL}"):  # fmt: skip
            refused = await client.options("/v1/agent", headers={"origin": origin, **asked})
            assert refused.status_code == 403, origin
            assert "access-control-allow-origin" not in refused.headers
    assert "access-control-allow-origin" not in plain.headers
    assert "origin" in plain.headers["vary"].lower()


async def test_preflights_need_no_key_and_the_request_after_them_does(serve: Serve, tmp_path: Path) -> None:
    key = await created_key(tmp_path / "data", "laptop")
    async with client_at(serve, require_key="always", cors_origins=(APP,)) as client:
        page = {"origin": APP, "host": "gate.lan"}
        asked = {"access-control-request-method": "GET", "access-control-request-private-network": "true"}
        preflight = await client.options("/v1/runs", headers=page | asked)
        with_key = await client.get("/v1/runs", headers=page | bearer(key))
        without = await client.get("/v1/runs", headers={"origin": APP})
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-private-network"] == "true"
    assert (with_key.status_code, without.status_code) == (200, 401)
    assert without.headers["access-control-allow-origin"] == APP, "the page can read why"


async def test_pages_of_the_own_host_are_allowed_whatever_the_scheme(serve: Serve) -> None:
    async with client_at(serve, allowed_hosts=("gate.lan",)) as client:
        at = port_of(client)
        for host, origin, status in (
            (f"127.0.0.1:{at}", f"http://127.0.0.1:{at}", 200),
            (f"127.0.0.1:{at}", f"https://127.0.0.1:{at}", 200),
            (f"[::1]:{at}", f"http://[::1]:{at}", 200),
            ("gate.lan", "https://gate.lan", 200),
            ("gate.lan:443", "https://gate.lan", 200),
            (f"127.0.0.1:{at}", "http://127.0.0.1", 403),
            (f"127.0.0.1:{at}", f"http://localhost:{at}", 403),
            ("gate.lan", "https://gate.lan:8443", 403),
        ):
            got = await client.post("/v1/agent", json=PROMPT, headers={"host": host, "origin": origin})
            assert got.status_code == status, (host, origin)
        two = f"GET /v1/runs HTTP/1.1\r\nHost: x.localhost\r\nOrigin: http://x.localhost\r\nOrigin: {EVIL}\r\n\r\n"
        assert (await exchange(client.base_url, two.encode()))[0] == 403
