"""Row 4: eight parallel steps, each a model call and judged by another."""

from time import perf_counter

from tests.bench.contenders import STEPGATE, Running, arena, list_references
from tests.bench.load import ask, client
from tests.bench.measure import in_turn
from tests.bench.report import Row
from tests.bench.work import fan, request

UPSTREAM_S = 0.2
CRITICAL_S = 4 * UPSTREAM_S
ROUNDS = 5


async def row() -> Row:
    """Wall time of the request over its longest chain: plan, step, verdict, answer, 200 ms each; one client."""
    body = request("fan")
    async with client() as session, arena(fan(UPSTREAM_S), "fan") as (server, running):

        async def measure(one: Running) -> float:
            started = perf_counter()
            await ask(session, one.url, body)
            return (perf_counter() - started) / CRITICAL_S

        for one in running:
            server.load(fan(UPSTREAM_S))
            await ask(session, one.url, body)
            asked = server.purposes()
            assert (asked.count("skill"), asked.count("supervisor")) == (8, 8), f"{one.name} asked for {asked}"
        found = await in_turn(running, measure, ROUNDS)
    return Row(
        "4 makespan over the critical path, 8 parallel steps, all judged",
        "",
        found[STEPGATE],
        1.10,
        list_references("fan", found),
    )
