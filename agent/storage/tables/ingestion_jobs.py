"""Jobs that read sources into collections, with the batches that processes share."""

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, PrimaryKeyConstraint, Table, Text, text

from agent.storage.tables.schema import metadata

jobs = Table(
    "jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("progress", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("worker", Text, nullable=False),
    Column("until", Float, nullable=False),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
    Column("place", Text),
    Column("walk", Text),
    Column("batched", BigInteger, nullable=False, server_default="0"),
)
Index("jobs_by_owner", jobs.c.owner, jobs.c.created)
Index("jobs_by_status", jobs.c.status, jobs.c.until)

job_batches = Table(
    "job_batches",
    metadata,
    Column("job_id", Text, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("items", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("documents", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("worker", Text, nullable=False),
    Column("until", Float, nullable=False),
    Column("updated", Float, nullable=False),
    PrimaryKeyConstraint("job_id", "number"),
)
# A query uses it only if it contains the condition in exactly these words.
Index(
    "job_batches_open",
    job_batches.c.until,
    sqlite_where=text("status IN ('queued', 'running')"),
    postgresql_where=text("status IN ('queued', 'running')"),
)
