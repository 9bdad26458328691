"""`AGENT_GUARD_ANSWER_PII=auto`: contacts of documents that the caller alone reads stay in answers, others do not."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.models import LOCAL_OWNER
from agent.core.principal import LOCAL, Principal
from agent.core.settings import Settings
from gateway.access.unshared_sources import OWNED_SOURCES, UnsharedSources
from tests.integration.conftest import Serve
from tests.integration.test_audit import keys_of
from tests.support.keys import bearer
from tests.support.script import Script, plans, says, script
from tests.support.website import Page, Website

CONTACT = "security@corp.example"
REMOVED = "[removed: EMAIL]"
PAGE = f"Lost devices are reported to {CONTACT} within one hour."
SEARCH = {"tool": "search_knowledge", "inputs": {"query": "report a lost device"}}
READ = {"tool": "read_file", "inputs": {"path": "it.md"}}
ALL = (*OWNED_SOURCES, "files")


def reading(*steps: dict[str, Any]) -> Script:
    """A model that reads by these steps and answers with the contact."""
    numbers = [f"s{number}" for number in range(1, len(steps) + 1)]
    return script(
        plans(*steps, {"tool": "completion", "depends_on": numbers}),
        says(f"Report it to {CONTACT}. [1]", to="completion", chunk=4),
    )


async def upload(client: httpx.AsyncClient, key: str | None = None) -> None:
    sent = await client.post(
        "/v1/documents",
        headers=bearer(key) if key else {},
        files={"file": ("it.md", f"# Lost devices\n\n{PAGE}\n".encode())},
        data={"collection": "it"},
    )
    assert sent.status_code in (200, 201), sent.text


async def ask(client: httpx.AsyncClient, key: str | None = None) -> str:
    body = {"prompt": "To whom do I report a lost device? Look it up please.", "conversation_id": "c"}
    answer = await client.post("/v1/agent", json=body, headers=bearer(key) if key else {})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["response"])


@asynccontextmanager
async def gateway(serve: Serve, model: Script, folder: Path, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    (folder / "files").mkdir(exist_ok=True)
    (folder / "files" / "it.md").write_text(PAGE)
    async with (
        serve(model, file_roots=(folder / "files",), **options) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        yield client


@pytest.mark.row("S003-02")
@pytest.mark.parametrize("step", [SEARCH, READ], ids=["documents", "files"])
async def test_at_home_ones_own_documents_are_answered_from(serve: Serve, tmp_path: Path, step: dict[str, Any]) -> None:
    async with gateway(serve, reading(step), tmp_path) as client:
        await upload(client)
        answer = await ask(client)
        chat = {"model": "stepgate", "stream": True, "messages": [{"role": "user", "content": "Look up lost devices."}]}
        streamed = (await client.post("/v1/chat/completions", json=chat)).text
        history = (await client.get("/v1/conversations/c/state")).json()["history"]
    frames = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
    pieces = "".join(choice["delta"].get("content") or "" for frame in frames for choice in frame["choices"])
    assert CONTACT in answer
    assert CONTACT in pieces
    assert CONTACT in history[-1]["content"]


@pytest.mark.row("S003-02")
async def test_two_owners_each_read_their_own_and_files_are_everybodys(serve: Serve, tmp_path: Path) -> None:
    async with gateway(serve, reading(SEARCH), tmp_path, require_key="always") as client:
        async with keys_of(tmp_path / "data") as keys:
            _, anna = await keys.create("anna", "laptop", ["agent", "ingest"])
            _, bob = await keys.create("bob", "laptop", ["agent", "ingest"])
        await upload(client, anna)
        hers, his = await ask(client, anna), await ask(client, bob)
    async with gateway(serve, reading(READ), tmp_path, require_key="always") as client:
        file = await ask(client, anna)
    assert CONTACT in hers
    assert CONTACT not in his, "he has no documents, and what a model adds by itself is somebody's"
    assert CONTACT not in file
    assert REMOVED in file


@pytest.mark.row("S003-02")
async def test_documents_that_several_keys_share_keep_others_contacts_out(serve: Serve, tmp_path: Path) -> None:
    async with gateway(serve, reading(SEARCH), tmp_path, require_key="always") as client:
        async with keys_of(tmp_path / "data") as keys:
            _, first = await keys.create("team", "anna", ["agent", "ingest"])
            _, second = await keys.create("team", "bob", ["agent"])
        await upload(client, first)
        answers = [await ask(client, key) for key in (first, second)]
    assert [REMOVED in answer and CONTACT not in answer for answer in answers] == [True, True]


async def test_a_page_of_the_web_beside_ones_own_documents_is_somebody_elses(serve: Serve, tmp_path: Path) -> None:
    async with Website() as site:
        site.put("/it", Page(f"<p>{PAGE}</p>".encode()))
        fetch = {"tool": "web_fetch", "inputs": {"url": site.at("/it")}}
        async with gateway(serve, reading(SEARCH, fetch), tmp_path, fetch_allow_hosts=("127.0.0.1",)) as client:
            await upload(client)
            answer = await ask(client)
    assert CONTACT not in answer


@pytest.mark.parametrize(
    ("options", "keys", "caller", "expected"),
    [
        ({}, [], LOCAL, ALL),
        ({}, ["anna"], LOCAL, OWNED_SOURCES),
        ({}, [LOCAL_OWNER], LOCAL, ()),
        ({"host": "0.0.0.0"}, [], LOCAL, ALL),  # keys are required: only commands on this machine are local
        ({"host": "0.0.0.0", "require_key": "never"}, [], LOCAL, ()),
        ({"require_key": "never", "public_url": "https://gate.example"}, [], LOCAL, ()),
        ({"require_key": "always"}, ["anna"], "anna", ALL),
        ({}, ["anna"], "anna", OWNED_SOURCES),
        ({"require_key": "always"}, ["anna", "bob"], "anna", OWNED_SOURCES),
        ({"require_key": "always"}, ["anna", "anna"], "anna", ()),
        ({"require_key": "always"}, ["anna", "-anna"], "anna", ALL),
        ({}, [LOCAL_OWNER], LOCAL_OWNER, ()),
        ({"jwt_issuer": "https://id.example", "jwt_audience": "a"}, [], Principal("sub-1"), OWNED_SOURCES),
        ({"jwt_issuer": "https://id.example", "jwt_audience": "a"}, ["sub-1"], Principal("sub-1"), ()),
        ({"token_verifier": "some.module:make"}, ["anna"], "anna", ()),
    ],
)
async def test_what_nobody_else_reads(
    tmp_path: Path, options: dict[str, Any], keys: list[str], caller: Principal | str, expected: tuple[str, ...]
) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path / "data", **options)
    async with keys_of(tmp_path / "data") as store:
        made = {}
        for owner in keys:
            made[owner], _ = await store.create(owner.removeprefix("-"), "laptop", ["chat"])
            if owner.startswith("-"):
                await store.revoke(made[owner].id)
        principal = caller if isinstance(caller, Principal) else Principal(caller, key_id=made[caller].id)
        assert await UnsharedSources(store, settings).list_for(principal) == expected
