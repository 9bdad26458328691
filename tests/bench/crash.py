"""Row 6: model calls of a run whose process is killed in the middle, over the calls of one that is left alone."""

import asyncio
import contextlib
import tempfile
from pathlib import Path
from statistics import median
from time import monotonic

import aiohttp

from tests.bench.contenders import STEPGATE, Contender, contenders, list_references
from tests.bench.load import ask, client
from tests.bench.report import Row
from tests.bench.work import LOOKED_INTO, chain, request
from tests.support.scripted_server import ScriptedServer

UPSTREAM_S = 0.15
CALLS = 5
KILLED_IN = (2, 3, 4)
"""The model calls during which the process is killed: those of the three steps."""


async def row() -> Row:
    """A chain of three skill steps (five calls). Stepgate goes on by itself after the restart; with the others the
    client has to ask again. The median over the moments of the kill."""
    with ScriptedServer(chain(UPSTREAM_S)) as server:
        found = {
            one.name: median([await _killed(one, server, number) / CALLS for number in KILLED_IN])
            for one in contenders("chain")
        }
    return Row(
        "6 model calls with a kill -9 in mid-run over without",
        "",
        found[STEPGATE],
        1.2,
        list_references("chain", found),
    )


async def _killed(who: Contender, server: ScriptedServer, number: int) -> int:
    """The model calls of one request whose process dies during its call `number` and is started again."""
    server.load(chain(UPSTREAM_S))
    with tempfile.TemporaryDirectory() as folder:
        async with client() as session:
            with who.running(server.url, Path(folder)) as first:
                asking = asyncio.create_task(ask(session, first.url, request("chain")))
                await _count_requests(server, number)
                first.process.kill()
                with contextlib.suppress(aiohttp.ClientError):
                    await asking
            with who.running(server.url, Path(folder)) as second:
                text = await (_resumed(session, second.url) if who.name == STEPGATE else _again(session, second.url))
    assert text == LOOKED_INTO, f"{who.name} answered {text!r}"
    return len(server.requests())


async def _count_requests(server: ScriptedServer, number: int) -> None:
    """Return once the model server has received that many requests."""
    until = monotonic() + 30
    while len(await asyncio.to_thread(server.requests)) < number:
        assert monotonic() < until, f"the model was not asked {number} times"
        await asyncio.sleep(0.02)


async def _again(session: aiohttp.ClientSession, url: str) -> str:
    return await ask(session, url, request("chain"))


async def _resumed(session: aiohttp.ClientSession, url: str) -> str:
    """The answer of the one run of this gateway, once it has ended."""
    until = monotonic() + 30
    while monotonic() < until:
        async with session.get(f"{url}/v1/runs") as response:
            runs = (await response.json())["data"]
        if runs and runs[0]["status"] == "succeeded":
            async with session.get(f"{url}/v1/runs/{runs[0]['id']}") as response:
                answer: str = (await response.json())["response"]["response"]
                return answer
        await asyncio.sleep(0.05)
    raise AssertionError("the run did not go on after the restart")
