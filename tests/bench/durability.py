"""Row 7: what keeping every run on disk costs in turns a second."""

from tests.bench.contenders import STEPGATE, Running, arena, stepgate, undurable
from tests.bench.load import closed_loop
from tests.bench.measure import in_turn
from tests.bench.report import Row
from tests.bench.work import request, turn

CLIENTS = 50
TURNS = 300
ROUNDS = 3


async def row() -> Row:
    """Turns a second at 50 clients over those of the same gateway on a journal in memory that encodes nothing."""
    body = request("turn")

    async def measure(one: Running) -> float:
        load = await closed_loop(one.url, body=body, clients=CLIENTS, count=TURNS)
        return TURNS / load.wall

    async with arena(turn(), "turn", stepgate, undurable) as (_, running):
        for one in running:
            await closed_loop(one.url, body=body, clients=CLIENTS, count=100)
        found = await in_turn(running, measure, ROUNDS)
    durable, without = found[STEPGATE], found[undurable.name]
    return Row(
        "7 throughput with durability over without",
        "",
        durable / without,
        0.85,
        at_least=True,
        note=f"({durable:.0f} of {without:.0f} turns/s)",
    )
