"""Tables that the processes of a fleet share, besides those of procrastinate: leases of housekeeping, and queues."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, PrimaryKeyConstraint, Table, Text

from agent.storage.tables.schema import metadata

# Work that one gateway of a fleet does at a time: who does it until when, and up to which time it is done.
housekeeping = Table(
    "housekeeping",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("until", Float, nullable=False),
    Column("done", Float, nullable=False),
)

# A queue that a process takes jobs from. `worker_id` is the one of `procrastinate_workers`, which has its heartbeat.
queue_workers = Table(
    "queue_workers",
    metadata,
    Column("worker_id", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("started", Float, nullable=False),
)

# The newest tag of an owner's jobs in a queue: what start-time fair queueing remembers.
queue_tags = Table(
    "queue_tags",
    metadata,
    Column("queue", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("tag", BigInteger, nullable=False),
    PrimaryKeyConstraint("queue", "owner"),
)
Index("queue_tags_by_tag", queue_tags.c.queue, queue_tags.c.tag)
