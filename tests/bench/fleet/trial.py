"""A trial: a fleet on a database of its own, the runs that were asked of it, and the verdict on them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

import aiohttp
import psycopg

from tests.bench.fleet.machines import Machines
from tests.bench.fleet.table import Line, judge_ends
from tests.bench.load import client
from tests.soak.clients import ROOM, SentRequest
from tests.soak.fleet import Fleet, read_logs, settle
from tests.soak.judge import judge_logs
from tests.soak.killer import furnish
from tests.soak.ledger import Ledger, ledger
from tests.soak.postgres_server import PostgresServer
from tests.support.processes import Process
from tests.support.script import Script
from tests.support.scripted_server import ScriptedServer

POLL_S = 0.05
PATIENCE_S = 120.0
"""How long something that must come is waited for, in seconds."""


class ShippedFleet(Fleet):
    """`stepgate serve` and `stepgate worker` as they are, without the tools of the soak."""

    gateway_command: ClassVar[tuple[str, ...]] = ("-m", "gateway.cli", "serve")
    worker_command: ClassVar[tuple[str, ...]] = ("-m", "gateway.cli", "worker")


@dataclass(frozen=True, slots=True)
class Site:
    """Where all trials take place."""

    folder: Path
    server: PostgresServer
    machines: Machines


@dataclass
class Trial:
    """A fleet, and what is known of the runs that were asked of it."""

    database: str
    upstream: ScriptedServer
    kept: Ledger
    fleet: Fleet
    gateway: Process
    url: str
    session: aiohttp.ClientSession
    asked: list[SentRequest] = field(default_factory=list)

    async def ask(self, what: str, **headers: str) -> None:
        """Has one run accepted in the background. A gateway that cannot is no fault."""
        asked = SentRequest("agent", f"w{len(self.asked):05}e")
        self.asked.append(asked)
        body = {"prompt": f"{what} and record {asked.word}", "room": ROOM, "background": True}
        try:
            async with self.session.post(f"{self.url}/v1/agent", json=body, headers=headers) as response:
                asked.status = response.status
                asked.run_id = response.headers.get("x-stepgate-run-id", "")
                await response.read()
        except aiohttp.ClientError:
            asked.status = 0

    async def ask_many(self, count: int, what: str, *, at_once: int = 8, **headers: str) -> None:
        """Has so many runs accepted, by some clients at a time. Raises `AssertionError` if one is refused."""
        first, left = len(self.asked), iter(range(count))

        async def one() -> None:
            for _ in left:
                await self.ask(what, **headers)

        await asyncio.gather(*(one() for _ in range(at_once)))
        refused = [asked.status for asked in self.asked[first:] if not asked.run_id]
        assert not refused, f"the gateway refused {len(refused)} of {count} runs, with status {refused[0]}"

    def read(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a query on the trial's database."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            return connection.execute(statement.encode(), values).fetchall()

    async def wait_until(self, statement: str, *values: object) -> None:
        """Waits until the query's first value is true. Raises `AssertionError`."""
        until = monotonic() + PATIENCE_S
        async with await psycopg.AsyncConnection.connect(self.database, autocommit=True) as connection:
            while True:
                row = await (await connection.execute(statement.encode(), values)).fetchone()
                if row is not None and row[0]:
                    return
                assert monotonic() < until, f"never became true: {statement}"
                await asyncio.sleep(POLL_S)

    async def judge(self, what: str, asked: list[SentRequest] | None = None) -> Line:
        """Waits for the end of all runs, and judges them by the logs of everybody. Returns the line of the table."""
        left = await settle(self.database)
        logs = await read_logs(self.database)
        verdict = judge_logs(logs, self.asked if asked is None else asked, self.kept, self.upstream.requests())
        findings = [*verdict.findings, *([f"{left} runs did not end in time"] if left else [])]
        return judge_ends(what, verdict.figures["runs accepted"], verdict.figures["ended"], findings)


@asynccontextmanager
async def trial(
    site: Site,
    name: str,
    script: Script,
    *,
    kind: type[Fleet] = Fleet,
    gateway: dict[str, object] | None = None,
    cold: bool = False,
    **settings: object,
) -> AsyncIterator[Trial]:
    """Begins a trial with a gateway that executes nothing itself, and no worker yet. `gateway` are settings of the
    gateway alone. Ends all processes of the trial.
    """
    folder = site.folder / name
    folder.mkdir()
    furnish(folder)
    database = site.server.create_database(name)
    async with AsyncExitStack() as stack:
        upstream = stack.enter_context(ScriptedServer(script, site.machines.address))
        kept = await stack.enter_async_context(ledger())
        session = await stack.enter_async_context(client())
        # What runs on other machines reaches the servers of this one at its address there; so may everything else.
        reachable = database.replace("127.0.0.1", site.machines.address)
        fleet = kind(folder, reachable, upstream, kept.url, **settings)
        process, url = await fleet.start_gateway(cold=cold, **{"queue_slots": 0, **(gateway or {})})
        stack.callback(process.kill)
        stack.callback(fleet.kill_workers)
        yield Trial(database, upstream, kept, fleet, process, url, session)
