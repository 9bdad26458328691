"""Row 3: how much later the first text of a stream arrives than it would from the model itself."""

from statistics import median

from tests.bench.contenders import STEPGATE, Running, arena, list_references
from tests.bench.load import client, first_text
from tests.bench.measure import Figures, in_turn
from tests.bench.report import Row
from tests.bench.work import for_anyone, request, story, turn

UPSTREAM_S = 0.2
STREAMS = 3


async def plain() -> Row:
    """Time to the first text over the model server's own, which is asked in the same rounds; one client."""
    body = request("stream", stream=True)
    async with client() as session, arena(story(40, UPSTREAM_S), "stream") as (server, running):

        async def own() -> float:
            return median([await first_text(session, server.root, body) for _ in range(STREAMS)])

        async def measure(one: Running) -> float:
            times = [await first_text(session, one.url, body) for _ in range(STREAMS)]
            return median(times) / await own()

        # The model server answers by purpose; a client has none.
        server.load(for_anyone(story(40, UPSTREAM_S)))
        found = await in_turn(running, measure)
    return _row("3 first chunk over the model's own, plain room", "stream", found)


async def planned() -> Row:
    """Time to the first text of a planned turn over its critical path: the plan's reply, then the answer's begin."""
    body = request("turn", stream=True)
    async with client() as session, arena(turn(UPSTREAM_S), "turn") as (_, running):

        async def measure(one: Running) -> float:
            return median([await first_text(session, one.url, body) for _ in range(STREAMS)]) / (2 * UPSTREAM_S)

        found = await in_turn(running, measure)
    return _row("3 first chunk over the critical path, planned", "turn", found)


def _row(what: str, work: str, found: Figures) -> Row:
    return Row(what, "", found[STEPGATE], 1.10, list_references(work, found))
