"""The client: aiohttp, in the process of the bench, closed loop."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from time import perf_counter
from typing import Any

import aiohttp


@dataclass(frozen=True, slots=True)
class Load:
    """What came of it: the latency of each request and the wall time of all, in seconds."""

    latencies: list[float]
    wall: float


@asynccontextmanager
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    """A session without limits."""
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        yield session


async def ask(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> str:
    """One request; its answer's text. Raises for anything but an answer."""
    async with session.post(f"{url}/v1/chat/completions", json=body) as response:
        data = await response.read()
    if response.status != 200:
        raise RuntimeError(f"{url} answered {response.status}: {data[:300]!r}")
    text: str = json.loads(data)["choices"][0]["message"]["content"]
    return text


async def drain(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> str:
    """One streamed request, read to its end; all of it as text."""
    async with session.post(f"{url}/v1/chat/completions", json=body) as response:
        return (await response.read()).decode()


async def first_text(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> float:
    """Seconds until the first piece of the answer's text has arrived; the stream is read to its end."""
    started = perf_counter()
    seen = 0.0
    async with session.post(f"{url}/v1/chat/completions", json=body) as response:
        async for line in response.content:
            if not seen and line.startswith(b"data: {") and _has_text(line):
                seen = perf_counter() - started
    return seen


def _has_text(line: bytes) -> bool:
    choices = json.loads(line[6:])["choices"]
    return bool(choices and choices[0]["delta"].get("content"))


async def closed_loop(*urls: str, body: dict[str, Any], clients: int, count: int, spread_s: float = 0.0) -> Load:
    """`count` requests by `clients` that each wait for their answer before they ask again; each asks one of `urls`.

    With `spread_s` the clients begin evenly over that time and pause for up to a tenth of it between requests, so
    that they do not march in step: in step, every one waits for all others."""
    left = iter(range(count))
    latencies: list[float] = []
    random = Random(7)

    async def one(number: int, session: aiohttp.ClientSession) -> None:
        await asyncio.sleep(spread_s * number / clients)
        for _ in left:
            started = perf_counter()
            await ask(session, urls[number % len(urls)], body)
            latencies.append(perf_counter() - started)
            await asyncio.sleep(random.random() * spread_s / 10)

    async with client() as session:
        started = perf_counter()
        await asyncio.gather(*(one(number, session) for number in range(clients)))
        return Load(latencies, perf_counter() - started)


async def open_loop(url: str, *, body: dict[str, Any], rate: float, count: int) -> Load:
    """`count` requests that begin at even intervals, `rate` a second, whether or not earlier ones are answered: as many
    independent people ask."""
    latencies: list[float] = []

    async def one(number: int, session: aiohttp.ClientSession) -> None:
        await asyncio.sleep(number / rate)
        started = perf_counter()
        await ask(session, url, body)
        latencies.append(perf_counter() - started)

    async with client() as session:
        started = perf_counter()
        await asyncio.gather(*(one(number, session) for number in range(count)))
        return Load(latencies, perf_counter() - started)
