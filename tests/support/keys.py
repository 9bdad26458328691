"""API keys for tests: made in the data folder of a gateway, which runs or does not run yet."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.core.models import LOCAL_OWNER
from agent.storage.api_keys import KeyStore
from agent.storage.audit import StoredAuditLog
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient

SCOPES = "chat,agent,approve,ingest,mcp"
"""The scopes of `stepgate keys create`."""


async def created_key(
    folder: Path, name: str, *, owner: str = LOCAL_OWNER, scopes: str = SCOPES, tools: str | None = None
) -> str:
    """The text of a new key of this data folder, which a running gateway sees as it sees those of the command.

    `scopes` and `tools` are separated by commas. The command assembles a whole gateway in a process of its own; its
    tests stand in tests/integration/test_keys.py."""
    allowed = None if tools is None else tools.split(",")
    async with _open_store(folder) as keys:
        _, text = await keys.create(owner, name, scopes.split(","), tools=allowed, by="test")
    return text


async def revoke_key(folder: Path, key: str) -> None:
    """Revokes a key of this data folder, given its text."""
    async with _open_store(folder) as keys:
        await keys.revoke(key.split("_")[1], by="test")


@asynccontextmanager
async def _open_store(folder: Path) -> AsyncIterator[KeyStore]:
    store = await open_sqlite(folder / "stepgate.db")
    try:
        statements = SqliteClient(store.database)
        yield KeyStore(statements, time.time, StoredAuditLog(statements, time.time))
    finally:
        await store.close()


def bearer(key: str) -> dict[str, str]:
    """The header that sends a key."""
    return {"authorization": f"Bearer {key}"}
