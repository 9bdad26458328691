"""Requests nobody has thought of, from the OpenAPI document; `make fuzz` sends more, with another seed each time.

FUZZ_CASES is how many each operation gets of either kind, right ones and wrong ones; FUZZ_SEED makes them the same
again.
"""

import os
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute, Route

from agent.core.settings import Settings
from gateway.app import create_app
from gateway.bootstrap import build_gateway
from tests.support.fuzzing import BASE, Fuzzer, faults_of

CASES = int(os.environ.get("FUZZ_CASES", "2"))
SEED = int(os.environ.get("FUZZ_SEED", "20263"))


class Furnished(NamedTuple):
    """A gateway that has one of everything, and the ids."""

    app: FastAPI
    client: httpx.AsyncClient
    known: dict[str, Any]


@pytest.fixture
async def furnished(tmp_path: Path) -> AsyncIterator[Furnished]:
    files = tmp_path / "files"
    files.mkdir()
    (files / "leave.md").write_text("# Leave\n\nEverybody has 25 days of leave.\n")
    settings = Settings(
        _env_file=None, data_dir=tmp_path / "data", port=0, skills_dirs=(), drain_seconds=1,
        file_roots=(files,), conversations_require_llm=False,
    )  # fmt: skip
    async with build_gateway(settings) as stepgate:
        app = create_app(settings, stepgate)
        transport = httpx.ASGITransport(app)
        async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            run = await client.post("/v1/agent", json={"prompt": "2+2"})
            task = (await client.post("/tasks", json={"prompt": "2+2"})).json()["task_id"]
            await client.post(f"/tasks/{task}/run")
            document = await client.post("/v1/documents", files={"file": ("leave.md", b"# Leave\n\n25 days.\n")})
            source = await client.post("/v1/sources", json={"source_identifier": str(files)})
            talk = await client.post("/api/v2/agent/conversations", json={"source_id": source.json()["id"]})
            job = await client.post(
                "/v1/collections/documents/ingest", json={"source_type": "local", "source_identifier": str(files)}
            )
            await client.get(f"/v1/jobs/{job.json()['id']}?wait_s=20")
            known = {
                "run_id": run.headers["x-stepgate-run-id"],
                "task_id": task,
                "document_id": document.json()["document_id"],
                "source_id": source.json()["id"],
                "conversation_id": talk.json()["id"],
                "job_id": job.json()["id"],
                "name": "documents",
                "model": "stepgate",
                "room": "stepgate",
                "messages": [{"role": "user", "content": "2+2"}],
                "collection": "documents",
                "collection_name": "documents",
            }
            yield Furnished(app, client, known)


async def test_no_request_of_the_documents_making_breaks_a_promise(furnished: Furnished) -> None:
    fuzzer = Fuzzer(furnished.app, furnished.known, cases=CASES, number=SEED)
    wrong = await fuzzer.run()
    assert not wrong, f"seed {SEED}, {len(wrong)} of {fuzzer.sent}:\n" + "\n".join(wrong[:40])
    # Doors that only ever refused were not tried. Made-up ids find nothing: paths with an id do not count.
    never = [label for label, seen in fuzzer.statuses.items() if min(seen) >= 400 and "{" not in label]
    assert len(never) < sum("{" not in label for label in fuzzer.statuses) / 2, never
    assert 200 in fuzzer.statuses["POST /v1/chat/completions"] | fuzzer.statuses["POST /v1/agent"]
    assert (await furnished.client.get("/health")).status_code == 200


BROKEN = {
    "no JSON": b"{",
    "an array": b"[]",
    "a wrong type": b'{"prompt": 7, "model": 7, "messages": 7, "user_message": 7}',
    "not a number": b'{"prompt": NaN}',
    "a name twice": b'{"prompt": "a", "prompt": "b"}',
    "half a character": b'{"prompt": "\\ud800", "model": "\\udfff", "user_message": "\\ud800", "\\udc00": 1}',
    "no character": b'{"prompt": "\x00"}',
    "a bottomless pit": b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "nothing": b"",
}
HEADERS = {
    "json": {"content-type": "application/json"},
    "text": {"content-type": "text/plain"},
    "gzip": {"content-type": "application/json", "content-encoding": "gzip"},
    "a form": {"content-type": "multipart/form-data; boundary=x"},
    "no type": {},
}


async def test_every_route_refuses_broken_bodies_and_methods_in_its_own_shape(furnished: Furnished) -> None:
    """Every route of the app, also those that are in no document; FastAPI's own error body reaches nobody."""
    wrong: list[str] = []
    tried = 0
    for path, methods in sorted(routes_of(furnished)):
        if "POST" not in methods:
            continue
        for name, body in BROKEN.items():
            for kind, headers in HEADERS.items():
                if kind != "json" and name not in ("no JSON", "a wrong type"):
                    continue
                response = await furnished.client.post(path, content=body, headers=headers)
                tried += 1
                wrong += [f"{path}, {name} as {kind}: {fault}" for fault in faults_of(response)]
                if response.status_code == 422 and response.json().get("detail") is not None:
                    wrong.append(f"{path}, {name}: FastAPI's own 422")
    paths = {path for path, _ in routes_of(furnished)} | {"/nope", "/v1/nope", "/v1/models/a/b"}
    for path in sorted(paths):
        taken = {method for other, methods in routes_of(furnished) if other == path for method in methods}
        for method in sorted({"PUT", "PATCH", "OPTIONS", "TRACE"} - taken):
            response = await furnished.client.request(method, path)
            assert response.status_code in (404, 405), (method, path, response.status_code)
            wrong += [f"{method} {path}: {fault}" for fault in faults_of(response)]
    assert not wrong, "\n".join(wrong[:40])
    assert tried > 150


def routes_of(furnished: Furnished) -> set[tuple[str, frozenset[str]]]:
    """Every path that is served, with ids that exist where they are known, and its methods."""
    known = {**furnished.known, "view": "nope"}
    found: set[tuple[str, frozenset[str]]] = set()
    for route in _flat(furnished.app.routes):
        path = re.sub(r"{(\w+)}", lambda name: str(known.get(name[1], "x")), route.path)
        found.add((path, frozenset(route.methods or {"POST"})))
    return found


def _flat(routes: Sequence[BaseRoute]) -> Iterator[Route]:
    for route in routes:
        if isinstance(route, Route):
            yield route
        else:  # FastAPI keeps an included router as it is
            yield from _flat(route.original_router.routes)  # type: ignore[attr-defined]
