"""Row 8: what a process costs to start, to keep, for each turn under way, and for a long stream."""

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import monotonic

import aiohttp

from tests.bench.contenders import LITELLM, STEPGATE, Running, arena, contenders, list_references
from tests.bench.load import ask, client, closed_loop, drain
from tests.bench.measure import ROUNDS, Figures, cpu_seconds, in_turn, resident_kb
from tests.bench.report import Row, compare
from tests.bench.work import request, story, turn
from tests.support.script import Script
from tests.support.scripted_server import ScriptedServer

CHUNKS = 400
STREAMS = 40
FEW, MANY = 100, 300


async def at_rest() -> list[Row]:
    """CPU seconds from the command to the first answered health request, on a folder that exists (the first start is
    not counted); resident MB then, and once a turn has been answered, which loads what only turns need."""
    who = contenders("turn")
    names = [one.name for one in who]
    cold, idle, used = ({name: list[float]() for name in names} for _ in range(3))
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(turn()) as server:
        for number in range(ROUNDS + 1):
            for one in who:
                with one.running(server.url, Path(folder) / one.name) as running:
                    figures = await _started(running)
                for kept, figure in zip((cold, idle, used), figures, strict=True):
                    kept[one.name] += [figure] if number else []
    return [
        _row("8 cold start, CPU", "s", 1.2, _medians(cold)),
        _row("8 memory at rest, RSS", "MB", 110, _medians(idle)),
        _row("8 memory at rest after the first turn, RSS", "MB", 110, _medians(used)),
    ]


def _medians(found: dict[str, list[float]]) -> Figures:
    return {name: median(values) for name, values in found.items()}


async def _started(one: Running) -> tuple[float, float, float]:
    async with client() as session:
        async with session.get(f"{one.url}/health") as response:
            response.raise_for_status()
        seconds, idle = cpu_seconds(one.pid), resident_kb(one.pid) / 1024
        await ask(session, one.url, request("turn"))
    return seconds, idle, resident_kb(one.pid) / 1024


async def in_flight() -> Row:
    """Resident KB a turn whose answer the model is still thinking about: the slope from 100 to 300 of them."""
    async with arena(turn(), "turn") as (server, running):
        for one in running:
            await closed_loop(one.url, body=request("turn"), clients=50, count=200)
        found = {one.name: await _slope(one, server) for one in running}
    return _row("8 memory a turn in flight", "KB", 80, found)


async def _slope(one: Running, server: ScriptedServer) -> float:
    server.load(_unanswered(turn()))
    waiting: list[asyncio.Task[str]] = []
    async with client() as session:
        sizes = []
        for wanted in (FEW, MANY):
            await _waiting(one, server, session, waiting, wanted)
            sizes.append(resident_kb(one.pid))
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return (sizes[1] - sizes[0]) / (MANY - FEW)


async def _waiting(
    one: Running, server: ScriptedServer, session: aiohttp.ClientSession, waiting: list[asyncio.Task[str]], wanted: int
) -> None:
    """Ask until `wanted` turns are under way and each has asked the model for its answer."""
    waiting += [asyncio.create_task(ask(session, one.url, request("turn"))) for _ in range(wanted - len(waiting))]
    until = monotonic() + 60
    while len(await asyncio.to_thread(server.requests)) < 2 * wanted:
        ended = [task for task in waiting if task.done()]
        assert not ended, f"{one.name} did not wait: {ended[0]}"
        assert monotonic() < until, f"{one.name} has not {wanted} turns under way"
        await asyncio.sleep(0.3)
    await asyncio.sleep(0.3)


def _unanswered(rules: Script) -> Script:
    """The same script, with answers that never come."""
    return Script(
        [
            replace(rule, reply=replace(rule.reply, fault="hang"))
            if rule.purpose == "completion" or (rule.purpose == "agent" and rule.contains)
            else rule
            for rule in rules.rules
        ]
    )


async def streams() -> list[Row]:
    """CPU in ms of a streamed answer of 400 chunks that the model sends as fast as it can; five clients."""
    body = request("stream", stream=True)
    async with client() as session, arena(story(CHUNKS), "stream") as (_, running):

        async def measure(one: Running) -> float:
            before = cpu_seconds(one.pid)
            for _ in range(STREAMS // 5):
                texts = await asyncio.gather(*(drain(session, one.url, body) for _ in range(5)))
                assert all('"stop"' in text and "once" in text for text in texts), texts[0][:300]
            return 1000 * (cpu_seconds(one.pid) - before) / STREAMS

        for one in running:
            await measure(one)
        found = await in_turn(running, measure)
    row = _row(f"8 CPU of a stream of {CHUNKS} chunks", "ms", 8, found, "stream")
    return [row, *compare(row, (LITELLM,), aim=0.05)]


def _row(what: str, unit: str, aim: float, found: Figures, work: str = "turn") -> Row:
    return Row(what, unit, found[STEPGATE], aim, list_references(work, found))
