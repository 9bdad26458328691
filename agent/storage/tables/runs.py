"""The journal: runs with their events, signals and blobs, and the turns of conversations."""

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    false,
    text,
)

from agent.storage.tables.schema import COUNTER, metadata

runs = Table(
    "runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("room", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("hidden", Boolean, nullable=False, server_default=false()),
    Column("tainted", Boolean, nullable=False, server_default=false()),
    Column("title", Text, nullable=False),
    Column("conversation_id", Text),
    Column("epoch", Integer, nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("terminal", Boolean, nullable=False, server_default=false()),
    Column("worker", Text),
    Column("lease_until", Float, nullable=False, server_default="0"),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("queue", Text, nullable=False, server_default=text("''")),
    # The run that this one follows in its conversation, `root` for none; NULL for the one before it in time.
    Column("parent", Text),
)
Index("runs_by_owner", runs.c.owner, runs.c.created_at)
Index("runs_by_time", runs.c.created_at)
Index(
    "runs_by_conversation",
    runs.c.owner,
    runs.c.conversation_id,
    runs.c.created_at,
    sqlite_where=text("conversation_id IS NOT NULL"),
    postgresql_where=text("conversation_id IS NOT NULL"),
)
# The ended runs by their end: the ledger of usage and the deletion of old runs read them in this order.
Index(
    "runs_ended",
    runs.c.updated_at,
    sqlite_where=text("terminal"),
    postgresql_where=text("terminal"),
)
# Only unfinished runs are searched by lease, so the index is partial and small. A query uses it only if it contains
# the condition in exactly these words, and if it does not ask for an order that another index has: the claims' query
# orders by `created_at + 0`.
Index(
    "runs_unfinished",
    runs.c.lease_until,
    sqlite_where=text("terminal = 0"),
    postgresql_where=text("NOT terminal"),
)

events = Table(
    "events",
    metadata,
    Column("run_id", Text, ForeignKey("runs.run_id", ondelete="CASCADE"), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("v", Integer, nullable=False),
    Column("step_id", Text),
    Column("attempt", Integer),
    Column("data", Text, nullable=False),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("run_id", "seq"),
    sqlite_with_rowid=False,
)

# The words of each request in lower case, without the rest of its event: what a search of runs reads. Hidden runs and
# those of versions that did not keep them have none.
request_words = Table(
    "request_words",
    metadata,
    Column("run_id", Text, ForeignKey("runs.run_id", ondelete="CASCADE"), primary_key=True),
    Column("words", Text, nullable=False),
    sqlite_with_rowid=False,
)

signals = Table(
    "signals",
    metadata,
    Column("id", COUNTER, primary_key=True, autoincrement=True),
    Column("run_id", Text, ForeignKey("runs.run_id", ondelete="CASCADE"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("at", Float, nullable=False),
)
Index("signals_by_run", signals.c.run_id, signals.c.id)

blobs = Table(
    "blobs",
    metadata,
    Column("checksum", Text, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

# The blobs that a run's log refers to. A blob without a reference may be deleted.
blob_references = Table(
    "blob_references",
    metadata,
    Column("run_id", Text, ForeignKey("runs.run_id", ondelete="CASCADE"), nullable=False),
    Column("checksum", Text, ForeignKey("blobs.checksum"), nullable=False),
    PrimaryKeyConstraint("run_id", "checksum"),
    sqlite_with_rowid=False,
)
Index("blob_references_by_checksum", blob_references.c.checksum)

# By which the answers are known that clients send back as their history. They are deleted with their run.
answer_digests = Table(
    "answer_digests",
    metadata,
    Column("run_id", Text, ForeignKey("runs.run_id", ondelete="CASCADE"), nullable=False),
    Column("digest", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("trusted", Boolean, nullable=False),
    Column("private", Boolean, nullable=False),
    PrimaryKeyConstraint("run_id", "digest"),
    sqlite_with_rowid=False,
)
Index("answer_digests_by_owner", answer_digests.c.owner, answer_digests.c.digest)

# What went to models and their raw replies, where they are kept; deleted with their run, or by age.
model_prompts = Table(
    "model_prompts",
    metadata,
    Column("id", COUNTER, primary_key=True, autoincrement=True),
    Column("run_id", Text, ForeignKey("runs.run_id", ondelete="CASCADE"), nullable=False),
    Column("step_id", Text),
    Column("purpose", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("messages", Text, nullable=False),
    Column("reply", Text, nullable=False),
    Column("at", Float, nullable=False),
)
Index("model_prompts_by_run", model_prompts.c.run_id, model_prompts.c.id)
Index("model_prompts_by_time", model_prompts.c.at)

turns = Table(
    "turns",
    metadata,
    Column("id", COUNTER, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),
    Column("conversation_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("tainted", Boolean, nullable=False, server_default=false()),
    Column("at", Float, nullable=False),
)
Index("turns_by_conversation", turns.c.owner, turns.c.conversation_id, turns.c.id)
Index("turns_once", turns.c.run_id, turns.c.role, unique=True)
