"""Start-time fair queueing between owners, in the integer priority of a job (Goyal, Vin, Cheng 1996).

A job's tag is its cost plus the larger of two: the tag at the head of its queue, and the newest tag of its owner.
Its priority is the tag's negative, so that the smallest tag is taken first. An owner who has queued a thousand jobs
thus stands behind each other owner's next job, not before all of them. While a queue is empty, its newest tag stands
for the head.
"""

from agent.runs.dispatch import LANES
from agent.storage.postgres import Connection
from gateway.features.fleet.engine.queue_names import get_lane

COST_UNITS = 100
"""Tags of a job of cost 1; a job may cost a hundredth of that."""
BAND = 700_000_000
"""Tags of a lane. Each lane has a band of the 32-bit priorities, urgent lanes first: a fetch reads the index of all
waiting jobs in order of priority, and would otherwise pass over the million of an ingestion to find a run.
"""
RESTART_TAG = BAND // 2
"""An empty queue whose tags have come this far begins again at 0."""

_HEAD = (
    "SELECT -priority - %(base)s FROM procrastinate_jobs WHERE queue_name = %(queue)s AND status = 'todo' "
    "ORDER BY priority DESC, id LIMIT 1"
)
_CLOCK = f"COALESCE(({_HEAD}), (SELECT max(tag) FROM queue_tags WHERE queue = %(queue)s), 0)"  # noqa: S608 - constants
_TAKE_TAG = (
    "INSERT INTO queue_tags (queue, owner, tag) "  # noqa: S608 - constants only
    f"SELECT %(queue)s, %(owner)s, clock.tag + %(cost)s FROM (SELECT {_CLOCK} AS tag) AS clock "
    "ON CONFLICT (queue, owner) DO UPDATE SET tag = GREATEST(queue_tags.tag, excluded.tag - %(cost)s) + %(cost)s "
    "RETURNING tag"
)
_COMMIT_SOON = "WITH soon AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)) "
"""Has a statement's commit not wait for the disk. A crash of the server may then lose the newest tags: the owner's next
job stands a little further ahead than it should.
"""
_TAKE_TAG_ALONE = _COMMIT_SOON + _TAKE_TAG.replace("AS clock", "AS clock, soon")
_RESTART = (
    "DELETE FROM queue_tags WHERE queue IN (SELECT queue FROM queue_tags GROUP BY queue HAVING max(tag) > %s) "
    "AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE queue_name = queue AND status = 'todo')"
)


async def take_priority(db: Connection, queue: str, owner: str, cost: float, *, is_alone: bool = False) -> int:
    """Chooses the priority of the owner's next job, and records its tag. Holds the owner's row until the commit, for
    which an `is_alone` statement, one without a transaction around it, does not wait.
    """
    statement = _TAKE_TAG_ALONE if is_alone else _TAKE_TAG
    return await _read_priority(db, statement, queue, owner=owner, cost=max(1, round(cost * COST_UNITS)))


async def get_head_priority(db: Connection, queue: str) -> int:
    """The priority of a job that goes to the head of the queue."""
    return await _read_priority(db, f"SELECT {_CLOCK}", queue)


async def restart_tags(db: Connection) -> None:
    """Lets the tags of empty queues begin again before they leave the lane's band of priorities."""
    await db.execute(_RESTART, (RESTART_TAG,))


async def _read_priority(db: Connection, statement: str, queue: str, **values: object) -> int:
    base = LANES.index(get_lane(queue)) * BAND
    cursor = await db.execute(statement.encode(), {"queue": queue, "base": base, **values})
    row = await cursor.fetchone()
    assert row is not None
    return -base - min(int(row[0]), BAND - 1)  # a queue that has used up its band is served in order of arrival
