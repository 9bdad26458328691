"""The MCP door that cannot be entered: its requests get the error, and do not hang."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.core.settings import Settings
from agent.tools import ToolRegistry
from gateway.doors.lazy_mcp import LazyMcpDoor
from gateway.feature_loader import LoadedFeatures

NO_FEATURES = SimpleNamespace(context=SimpleNamespace(features=LoadedFeatures(())))


class Refusal:
    async def __aenter__(self) -> None:
        raise OSError("no more files can be opened")

    async def __aexit__(self, *_: object) -> None:
        """Never entered."""


async def test_requests_to_a_door_that_cannot_be_entered_get_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = LazyMcpDoor(Settings(_env_file=None))
    monkeypatch.setattr(lazy, "_load_door", lambda: SimpleNamespace(serve=lambda _: Refusal(), endpoints={}))
    async with lazy.serve(cast("Any", SimpleNamespace(registry=ToolRegistry(), host=NO_FEATURES))), asyncio.timeout(10):
        for _ in range(2):
            with pytest.raises(OSError, match="no more files"):
                await lazy.get_endpoint("/mcp", None)
