"""Rows 13 and 14: two gateways on one PostgreSQL against one, and `stepgate serve --workers 2` against `--workers 1`.

Each process is held to a share of a core. So they are as busy alone as together, and what the second one adds is not
limited by a machine that has no core left for it; what remains is what the processes cost each other.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import redis

from tests.bench import core_share
from tests.bench.contenders import Contender, build_gateway_command
from tests.bench.load import closed_loop
from tests.bench.measure import cpu_seconds
from tests.bench.report import NotMeasuredError, Row
from tests.bench.work import request, turn
from tests.support import postgres, redis_server
from tests.support.scripted_server import ScriptedServer

SHARE = 0.4
CLIENTS = 50
TURNS = 100
"""For each process, in each round."""
ROUNDS = 5
AIM_CPU, AIM_TURNS = 1.1, 1.7


@dataclass(frozen=True)
class Fleet:
    """The gateway processes of one database."""

    urls: list[str]
    pids: list[int]

    async def measure(self) -> tuple[float, float]:
        """The CPU of all its processes in ms a turn, and the turns a second."""
        before = sum(map(cpu_seconds, self.pids))
        load = await closed_loop(*self.urls, body=request("turn"), clients=CLIENTS, count=TURNS * len(self.pids))
        turns = len(load.latencies)
        return 1000 * (sum(map(cpu_seconds, self.pids)) - before) / turns, turns / load.wall


async def two_gateways() -> list[Row]:
    """CPU a turn and turns a second of two gateways over those of one, 50 clients, a model that answers at once."""
    with ScriptedServer(turn()) as server, ExitStack() as stack:
        one, two = (stack.enter_context(_start_gateways(server.url, count)) for count in (1, 2))
        return await _compare("13", "two gateways over one", one, two)


async def two_workers() -> list[Row]:
    """The same of one gateway with two processes over a gateway of one."""
    with ScriptedServer(turn()) as server, ExitStack() as stack:
        one, two = (stack.enter_context(_start_workers(server.url, count)) for count in (1, 2))
        return await _compare("14", "--workers 2 over --workers 1", one, two)


async def _compare(number: str, what: str, one: Fleet, two: Fleet) -> list[Row]:
    for fleet in (one, two):
        await fleet.measure()  # each process as warm as another
    measured: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    with core_share.hold([*one.pids, *two.pids], SHARE) as way:
        for _ in range(ROUNDS):
            for count, fleet in ((1, one), (2, two)):
                measured[count].append(await fleet.measure())
    (cpu_of_one, turns_of_one), (cpu, turns) = (
        tuple(median(column) for column in zip(*found, strict=True)) for found in measured.values()
    )
    return [
        Row(
            f"{number} CPU a turn, {what}", "", cpu / cpu_of_one, AIM_CPU,
            note=f"({cpu:.1f} and {cpu_of_one:.1f} ms)",
            details=[f"on one PostgreSQL, each process held to {SHARE} of a core {way}; {ROUNDS} rounds"],
        ),
        Row(
            f"{number} turns a second, {what}", "", turns / turns_of_one, AIM_TURNS,
            at_least=True, note=f"({turns:.0f} and {turns_of_one:.0f})",
        ),
    ]  # fmt: skip


@contextmanager
def _start_gateways(upstream: str, count: int) -> Iterator[Fleet]:
    with _make_place() as (folder, url), ExitStack() as stack:
        gateway = _make_gateway({"DATABASE_URL": url})
        running = [stack.enter_context(gateway.running(upstream, folder / str(number))) for number in range(count)]
        yield Fleet([one.url for one in running], [one.pid for one in running])


@contextmanager
def _start_workers(upstream: str, count: int) -> Iterator[Fleet]:
    if reason := _find_missing_redis():
        raise NotMeasuredError(reason)
    with _make_place() as (folder, url), redis_server.own_prefix() as prefix:
        settings = {"DATABASE_URL": url, "REDIS_URL": redis_server.URL, "REDIS_PREFIX": prefix}
        gateway = _make_gateway({**settings, "SERVE_WORKERS": str(count)})
        with gateway.running(upstream, folder) as parent:
            children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text("ascii").split()
            yield Fleet([parent.url], [int(pid) for pid in children] if count > 1 else [parent.pid])


def _make_gateway(settings: dict[str, str]) -> Contender:
    return Contender(
        "stepgate", lambda upstream, folder: build_gateway_command("gateway.cli", upstream, folder, settings)
    )


@contextmanager
def _make_place() -> Iterator[tuple[Path, str]]:
    """A folder and the URL of an empty database. Raises `NotMeasuredError` where there is no PostgreSQL."""
    if reason := postgres.absent():
        raise NotMeasuredError(reason)
    with tempfile.TemporaryDirectory() as folder, postgres.fresh_database() as url:
        yield Path(folder), url


def _find_missing_redis() -> str | None:
    """Returns why there is no Redis, or None."""
    try:
        with redis.Redis.from_url(redis_server.URL, socket_connect_timeout=2) as server:
            server.echo("?")
    except redis.RedisError as error:
        return f"no Redis at {redis_server.URL}: {error}"
    return None
