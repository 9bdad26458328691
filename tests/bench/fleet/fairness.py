"""Row 6: two owners share the workers, of whom one has queued many runs before the other comes."""

import asyncio
import time

from agent.storage.api_keys import KeyStore
from agent.storage.journal_postgres import open_postgres
from agent.storage.sql import PostgresClient
from tests.bench.fleet.table import Line
from tests.bench.fleet.trial import ShippedFleet, Site, trial
from tests.support.script import answers, script

SLOTS = 15
WORKERS = 2
LATER = 20
"""Runs of the owner who comes later."""


async def measure(site: Site, runs: int) -> list[Line]:
    """Has A queue so many runs, then B a few, and then starts the workers. Measures when B's begin."""
    what = f"6 A queues {runs:,} runs, then B {LATER}"
    model = script(answers("A gateway stands between clients and models."))
    async with trial(
        site, "fairness", model, kind=ShippedFleet, gateway={"require_key": "always"}, queue_slots=SLOTS,
        max_queued_runs=runs + LATER, lease_seconds=15,
    ) as one:  # fmt: skip
        anna, bert = await _create_keys(one.database)
        await one.ask_many(runs, "Say what a gateway is", authorization=f"Bearer {anna}")
        await one.ask_many(LATER, "Say what a worker is", authorization=f"Bearer {bert}")
        await asyncio.gather(*(one.fleet.start_worker() for _ in range(WORKERS)))
        ends = await one.judge(what)
        rows = one.read("SELECT owner FROM runs JOIN events USING (run_id) WHERE type = 'run.claimed' ORDER BY at")
    places = find_places([str(row[0]) for row in rows], "B")
    most = 2 * LATER + WORKERS * SLOTS
    return [
        Line(
            f"{what}: places at which B's runs begin",
            f"{places[0]} to {places[-1]}" if places else "none began",
            f"<= {most}: in turn, but for {WORKERS * SLOTS} slots; in order of arrival {runs} to {runs + LATER - 1}",
            len(places) == LATER and places[-1] <= most,
        ),
        ends,
    ]


def find_places(owners: list[str], owner: str) -> list[int]:
    """The places of an owner's runs among all, in the order in which they began; the first is 0."""
    return [place for place, one in enumerate(owners) if one == owner]


async def _create_keys(url: str) -> tuple[str, str]:
    """The keys of A and B."""
    store = await open_postgres(url)
    try:
        keys = KeyStore(PostgresClient(store.database), time.time)
        texts = [(await keys.create(owner, "bench", ["agent"]))[1] for owner in ("A", "B")]
    finally:
        await store.close()
    return texts[0], texts[1]
