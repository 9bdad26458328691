"""A gateway in process on a real port, with a scripted model behind it in a process of its own."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.settings import Settings
from gateway.features.documents.engine.ingest.parsers import pool
from tests.support import warm
from tests.support.script import Script
from tests.support.scripted_server import ScriptedServer
from tests.support.serving import serving

Serve = Callable[..., AbstractAsyncContextManager[str]]


@pytest.fixture(scope="session")
def model_server() -> Iterator[ScriptedServer]:
    """One scripted model server for all tests; each loads its own script."""
    with ScriptedServer(Script()) as server:
        yield server


@pytest.fixture(autouse=True)
def warm_parsers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in worker processes as ever; these begin with their imports done."""
    monkeypatch.setattr(pool, "WORKER", warm.LazyCommand("gateway.features.documents.engine.ingest.parsers.worker"))


@pytest.fixture(params=["capable", "auto"])
def each_profile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs with a model that is known to be capable, and as a gateway begins, with one that nobody knows."""
    monkeypatch.setenv("AGENT_MODEL_PROFILE", request.param)


@pytest.fixture
def serve(tmp_path: Path, model_server: ScriptedServer) -> Serve:
    """`async with serve(script) as url`: a gateway that asks the scripted model, or none without a script."""

    @asynccontextmanager
    async def running(script: Script | None = None, **options: Any) -> AsyncIterator[str]:
        if script is not None:
            model_server.load(script)
            options = {"llm_base_url": model_server.url, "model_fast": "small", "model_high": "large", **options}
        options = {"skills_dirs": (), "stream_coalesce_ms": 0, "drain_seconds": 1, **options}
        settings = Settings(_env_file=None, data_dir=tmp_path / "data", port=0, **options)
        async with serving(settings) as url:
            yield url

    return running


@asynccontextmanager
async def client_of(serve: Serve, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a gateway without a model, in which rules lead the conversations."""
    options = {"conversations_require_llm": False, **options}
    async with serve(None, **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client
