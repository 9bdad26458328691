"""A gateway in process on a real port, with a scripted model behind it in a process of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from agent.core.config import Settings
from gateway.app import create_app
from tests.support.script import Script
from tests.support.scripted_server import ScriptedServer

Serve = Callable[..., AbstractAsyncContextManager[str]]


@pytest.fixture(scope="session")
def model_server() -> Iterator[ScriptedServer]:
    """One scripted model server for all tests; each loads its own script."""
    with ScriptedServer(Script()) as server:
        yield server


@pytest.fixture
def serve(tmp_path: Path, model_server: ScriptedServer) -> Serve:
    """`async with serve(script) as url`: a gateway that asks the scripted model, or none without a script."""

    @asynccontextmanager
    async def running(script: Script | None = None, **options: Any) -> AsyncIterator[str]:
        if script is not None:
            model_server.load(script)
            options |= {"llm_base_url": model_server.url, "model_fast": "small", "model_high": "large"}
        options = {"skills_user_dir": False, "stream_coalesce_ms": 0, "drain_seconds": 1, **options}
        settings = Settings(_env_file=None, data_dir=tmp_path / "data", port=0, **options)
        config = uvicorn.Config(create_app(settings), host="127.0.0.1", port=0, log_config=None, lifespan="on")
        server = uvicorn.Server(config)
        task = asyncio.create_task(server._serve())
        async with asyncio.timeout(20):
            while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn offers only the flag
                await asyncio.sleep(0.01)
        if task.done():
            await task
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            async with asyncio.timeout(20):
                await task

    return running
