"""Changes a generated tool and kills itself before its N-th statement: `python -m tests.support.tool_crash_worker`.

Arguments: the data folder, the operation, N. Prints `done` if there were fewer statements.
"""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from agent.core.principal import LOCAL
from agent.net import SafeClient
from agent.sandbox.client import Sandbox
from agent.sandbox.limits import SandboxLimits
from agent.storage.audit import StoredAuditLog
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqlClient, SqliteClient
from agent.tools import ToolRegistry
from gateway.features.studio.engine.generated_tools.host_functions import HostFunctions
from gateway.features.studio.engine.generated_tools.service import GeneratedTools
from gateway.features.studio.engine.generated_tools.tool_runner import ToolRunner
from gateway.features.studio.engine.generated_tools.version_store import ToolVersionStore
from tests.support.tool_scripts import CODE, make_version

NAME = "convert_part_number"


class DeadlyClient:
    """A `SqlClient` whose process is killed at a statement; a transaction counts once before and once after it."""

    def __init__(self, client: SqlClient, lives: int) -> None:
        self._client = client
        self._lives = lives

    async def read(self, statement: str, *values: object) -> Any:
        """See `SqlClient.read`."""
        return await self._client.read(statement, *values)

    async def write(self, statement: str, *values: object) -> Any:
        """See `SqlClient.write`."""
        self._step()
        rows = await self._client.write(statement, *values)
        self._step()
        return rows

    async def write_all(self, *changes: Any) -> Any:
        """See `SqlClient.write_all`."""
        self._step()
        counts = await self._client.write_all(*changes)
        self._step()
        return counts

    def _step(self) -> None:
        if self._lives == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._lives -= 1


def build_service(statements: Any) -> GeneratedTools:
    """A service over a store, without a gateway around it."""

    async def read_file(path: str) -> str:
        raise FileNotFoundError(path)

    runner = ToolRunner(None, Sandbox(SandboxLimits(), parallel=1))
    audit = StoredAuditLog(statements, time.time)
    functions = HostFunctions(SafeClient(), read_file)
    return GeneratedTools(
        ToolVersionStore(statements, time.time), ToolRegistry(), runner, functions, audit, lambda *_: ()
    )


async def change(service: GeneratedTools, store: ToolVersionStore, operation: str) -> None:
    """Carries out one operation on what `prepare` has stored."""
    match operation:
        case "stage":
            await store.add(make_version(code=CODE + "# 4\n"))
        case "apply":
            await service.apply(LOCAL, NAME, version=3)
        case "restore":
            await service.restore(LOCAL, NAME, 1)
        case "discard":
            await service.discard(LOCAL, NAME, version=3)
        case "remove":
            await service.remove(LOCAL, NAME)


async def prepare(statements: SqlClient) -> None:
    """Stores version 1 (was in use), 2 (in use) and 3 (staged)."""
    store = ToolVersionStore(statements, time.time)
    for number in (1, 2, 3):
        version = await store.add(make_version(code=f"{CODE}# {number}\n"))
        if number < 3:
            await store.activate(version, by="local", sha256=version.sha256)


async def main() -> None:
    folder, operation, lives = sys.argv[1:]
    store = await open_sqlite(Path(folder) / "stepgate.db")
    statements = DeadlyClient(SqliteClient(store.database), int(lives))
    service = build_service(statements)
    await change(service, ToolVersionStore(statements, time.time), operation)
    print("done", flush=True)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
