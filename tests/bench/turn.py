"""CPU of the gateway for a planned, supervised, stored turn over HTTP, at several numbers of clients.

The model is the scripted server in a process of its own. The floor is the same HTTP framework answering a health
request, with nothing behind it.
"""

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter

import httpx
from httpx_aiohttp import AiohttpTransport

from tests.bench.report import cpu_seconds, table
from tests.support.processes import GatewayProcess
from tests.support.script import plans, says, script
from tests.support.scripted_server import ScriptedServer

TURNS = 1000
LIMIT_MS = 4.0
MODEL = script(
    plans(
        {"tool": "calculator", "inputs": {"expression": "2*21"}},
        {"tool": "current_time"},
        {"tool": "completion", "depends_on": ["s1", "s2"]},
    ),
    says(
        "It is 42, and here is what the steps have shown in two or three sentences of text.", to="completion", chunk=16
    ),
)
BODY = {"model": "stepgate", "messages": [{"role": "user", "content": "search the time and compute two times 21"}]}


async def main() -> None:
    """Print the table."""
    rows: list[tuple[str, float, str, float | None]] = []
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(MODEL) as server:
        settings = {"llm_base_url": server.url, "model_fast": "m"}
        with GatewayProcess(Path(folder), **settings) as gateway:
            async with httpx.AsyncClient(transport=AiohttpTransport(), timeout=60) as client:
                await _turns(client, gateway.url, 50, 10)
                floor = await _measure(client, gateway, 1000, 50, health=True)
                rows.append(("floor: GET /health, 50 clients", floor[0], "ms", None))
                for clients in (1, 10, 50):
                    cpu, wall = await _measure(client, gateway, TURNS, clients)
                    rows.append((f"turn: CPU, {clients} clients", cpu, "ms", LIMIT_MS if clients == 50 else None))
                    rows.append((f"turn: turns a second, {clients} clients", 1000 / wall, "1/s", None))
    table("A planned, supervised, stored turn (2 tools, 2 model calls)", rows)


async def _measure(
    client: httpx.AsyncClient, gateway: GatewayProcess, count: int, clients: int, *, health: bool = False
) -> tuple[float, float]:
    """CPU and wall time a request, in ms."""
    before, started = cpu_seconds(gateway.process.pid), perf_counter()
    if health:
        await _health(client, gateway.url, count, clients)
    else:
        await _turns(client, gateway.url, count, clients)
    wall = perf_counter() - started
    return 1000 * (cpu_seconds(gateway.process.pid) - before) / count, 1000 * wall / count


async def _turns(client: httpx.AsyncClient, url: str, count: int, clients: int) -> None:
    left = iter(range(count))

    async def one() -> None:
        for _ in left:
            response = await client.post(f"{url}/v1/chat/completions", json=BODY)
            response.raise_for_status()

    await asyncio.gather(*(one() for _ in range(clients)))


async def _health(client: httpx.AsyncClient, url: str, count: int, clients: int) -> None:
    left = iter(range(count))

    async def one() -> None:
        for _ in left:
            (await client.get(f"{url}/health")).raise_for_status()

    await asyncio.gather(*(one() for _ in range(clients)))
