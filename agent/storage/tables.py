"""The tables: the only definition of the schema.

In this order: runs with their log, and turns of conversations; vectors, chunks, documents, collections and ingestion
jobs; API keys, their reservations and idempotency; tasks; recipes; sources and pipeline conversations; the audit
record; prompts; rooms; conversations of clients; model usage; housekeeping; accepted tools of foreign MCP servers;
generated tools; what is known of the queue beside the tables of procrastinate; schedules with their ticks, and
deliveries of webhooks.

Every row has an owner, directly or through its run. Values from untrusted sources are marked `tainted`. Times are UTC
seconds since 1970.
"""

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    event,
    false,
    text,
)

metadata = MetaData()

# SQLite increments only INTEGER primary keys automatically.
_COUNTER = BigInteger().with_variant(Integer, "sqlite")

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

signals = Table(
    "signals",
    metadata,
    Column("id", _COUNTER, primary_key=True, autoincrement=True),
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

turns = Table(
    "turns",
    metadata,
    Column("id", _COUNTER, primary_key=True, autoincrement=True),
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

vector_sets = Table(
    "vector_sets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("embedder", Text, nullable=False),
    Column("dimension", Integer, nullable=False),
    Column("generation", Text, nullable=False),
    Column("added", BigInteger, nullable=False, server_default="0"),
    Column("removed", BigInteger, nullable=False, server_default="0"),
)

vectors = Table(
    "vectors",
    metadata,
    Column("name", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("payload", Text, nullable=False),
    PrimaryKeyConstraint("name", "id"),
)
Index("vectors_by_owner", vectors.c.name, vectors.c.owner, vectors.c.seq)

chunk_sets = Table(
    "chunk_sets",
    metadata,
    Column("id", _COUNTER, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("changes", BigInteger, nullable=False),
)
Index("chunk_sets_by_owner", chunk_sets.c.owner, chunk_sets.c.collection, unique=True)

chunks = Table(
    "chunks",
    metadata,
    Column("seq", _COUNTER, primary_key=True, autoincrement=True),
    Column("set_id", _COUNTER, ForeignKey("chunk_sets.id", ondelete="CASCADE"), nullable=False),
    Column("chunk_id", Text, nullable=False),
    Column("document_id", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("title_terms", Text, nullable=False),
    Column("text_terms", Text, nullable=False),
    Column("text", Text, nullable=False),
)
Index("chunks_by_id", chunks.c.set_id, chunks.c.chunk_id, unique=True)
Index("chunks_by_document", chunks.c.set_id, chunks.c.document_id)
Index("chunks_by_number", chunks.c.set_id, chunks.c.seq)

documents = Table(
    "documents",
    metadata,
    Column("owner", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("document_id", Text, nullable=False),
    Column("checksum", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("owner", "collection", "source"),
)
Index("documents_by_id", documents.c.owner, documents.c.document_id)
Index("documents_by_checksum", documents.c.owner, documents.c.checksum)

ingestions = Table(
    "ingestions",
    metadata,
    Column("owner", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("until", Float, nullable=False),
    Column("pending", Text, nullable=False),
    PrimaryKeyConstraint("owner", "collection"),
)

# What writers are about to write, until their documents are placed. `ingestions.pending` held one of them before.
pending_passages = Table(
    "pending_passages",
    metadata,
    Column("owner", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("document_id", Text, nullable=False),
    Column("amount", Integer, nullable=False),
    Column("holder", Text, nullable=False),
    PrimaryKeyConstraint("owner", "collection", "document_id"),
)

collections = Table(
    "collections",
    metadata,
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("pipeline", Text, nullable=False),
    Column("sources", Text, nullable=False),
    Column("embedder", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
    PrimaryKeyConstraint("owner", "name"),
)

collection_vectors = Table(
    "collection_vectors",
    metadata,
    Column("owner", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("serving", Text, nullable=False),
    Column("remaking", Text, nullable=False),
    PrimaryKeyConstraint("owner", "collection"),
)

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

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("secret_hash", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("tools", Text, nullable=False),
    Column("limits", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("revoked_at", Float),
    Column("last_used_at", Float),
    Column("used_tokens", BigInteger, nullable=False, server_default="0"),
    Column("used_usd", Float, nullable=False, server_default="0"),
)
Index("api_keys_by_owner", api_keys.c.owner)

key_reservations = Table(
    "key_reservations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("key_id", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("usd", Float, nullable=False),
    Column("at", Float, nullable=False),
)
Index("key_reservations_by_key", key_reservations.c.key_id)

idempotency = Table(
    "idempotency",
    metadata,
    Column("owner", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("headers", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("owner", "key"),
)
Index("idempotency_by_time", idempotency.c.at)

tasks = Table(
    "tasks",
    metadata,
    Column("task_id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("context", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
    Column("webhook", Text),
)
Index("tasks_by_owner", tasks.c.owner, tasks.c.created, tasks.c.task_id)

task_runs = Table(
    "task_runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("task_id", Text, ForeignKey("tasks.task_id", ondelete="CASCADE"), nullable=False),
    Column("owner", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("ended", Integer, nullable=False),
    Column("state", Text, nullable=False, server_default="null"),
    Column("plan", Text, nullable=False, server_default="null"),
    Column("tool_results", Text, nullable=False, server_default="null"),
    Column("verification", Text, nullable=False, server_default="null"),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
)
Index("task_runs_by_task", task_runs.c.task_id, task_runs.c.number, unique=True)
# Allows one unfinished run per task, across processes.
Index(
    "task_runs_open",
    task_runs.c.task_id,
    unique=True,
    sqlite_where=text("ended = 0"),
    postgresql_where=text("ended = 0"),
)

recipes = Table(
    "recipes",
    metadata,
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("staged", Text),
    Column("applied", Text),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
    PrimaryKeyConstraint("owner", "name"),
)

sources = Table(
    "sources",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("created", Float, nullable=False),
)
Index("sources_by_owner", sources.c.owner, sources.c.created, sources.c.id)

agent_conversations = Table(
    "agent_conversations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("chat_id", Text),
    Column("source_id", Text, ForeignKey("sources.id", ondelete="SET NULL")),
    Column("collection", Text),
    Column("status", Text, nullable=False),
    Column("current_pipeline", Text),
    Column("source_analysis", Text),
    Column("validation", Text),
    Column("applied", Text),
    Column("job_id", Text),
    Column("summary", Text),
    Column("asked", Text, nullable=False, server_default="[]"),
    Column("turns", Integer, nullable=False, server_default="0"),
    Column("tainted", Integer, nullable=False, server_default="0"),
    Column("run_id", Text),
    Column("claimed", Float, nullable=False, server_default="0"),
    Column("model_calls", BigInteger, nullable=False, server_default="0"),
    Column("prompt_tokens", BigInteger, nullable=False, server_default="0"),
    Column("completion_tokens", BigInteger, nullable=False, server_default="0"),
    Column("cost_usd", Float),
    Column("archived", Float),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
)
Index(
    "agent_conversations_by_owner", agent_conversations.c.owner, agent_conversations.c.created, agent_conversations.c.id
)
Index("agent_conversations_by_chat", agent_conversations.c.owner, agent_conversations.c.chat_id, unique=True)
Index("agent_conversations_by_source", agent_conversations.c.source_id)
Index(
    "agent_conversations_open",
    agent_conversations.c.run_id,
    sqlite_where=text("run_id IS NOT NULL"),
    postgresql_where=text("run_id IS NOT NULL"),
)

conversation_uncertainties = Table(
    "conversation_uncertainties",
    metadata,
    Column("id", Text, primary_key=True),
    Column("conversation_id", Text, ForeignKey("agent_conversations.id", ondelete="CASCADE"), nullable=False),
    Column("owner", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("context", Text, nullable=False),
    Column("resolved", Integer, nullable=False, server_default="0"),
    Column("resolved_by", Text),
    Column("resolver", Text),
    Column("note", Text),
    Column("resolved_at", Float),
    Column("created", Float, nullable=False),
)
Index(
    "uncertainties_by_conversation",
    conversation_uncertainties.c.conversation_id,
    conversation_uncertainties.c.created,
    conversation_uncertainties.c.id,
)
# Queried before a pipeline is applied. A query uses it only if it contains the condition in exactly these words.
Index(
    "uncertainties_blocking_unresolved",
    conversation_uncertainties.c.conversation_id,
    conversation_uncertainties.c.created,
    conversation_uncertainties.c.id,
    sqlite_where=text("severity = 'blocking' AND resolved = 0"),
    postgresql_where=text("severity = 'blocking' AND resolved = 0"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", _COUNTER, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("owner", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("detail", Text, nullable=False),
)
Index("audit_by_time", audit.c.at)
# Nobody changes records, neither our statements nor an operator by mistake.
_REFUSED = "the audit record is append-only"
for _name, _change in (
    ("update", "UPDATE ON audit"),
    ("delete", "DELETE ON audit"),
    # REPLACE deletes rows without firing the DELETE trigger.
    ("replace", "INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)"),
):
    _trigger = DDL(  # type: ignore[no-untyped-call]
        f"CREATE TRIGGER audit_no_{_name} BEFORE {_change} BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END"
    )
    event.listen(audit, "after_create", _trigger.execute_if(dialect="sqlite"))
for _statement in (
    f"CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{_REFUSED}'; END $$",
    "CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
    "FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()",
):
    _ddl = DDL(_statement)  # type: ignore[no-untyped-call]
    event.listen(audit, "after_create", _ddl.execute_if(dialect="postgresql"))

# A row for each version of a prompt.
prompts = Table(
    "prompts",
    metadata,
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("by_whom", Text, nullable=False),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("owner", "name", "version"),
)

# A row for each version of a room's YAML; one without data says that the room was deleted. Used with PostgreSQL only.
room_versions = Table(
    "room_versions",
    metadata,
    Column("room_id", Text, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("data", LargeBinary),
    Column("managed", Boolean, nullable=False, server_default=false()),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("room_id", "revision"),
)

# Conversations that clients of the Responses API make, with the items they add.
client_conversations = Table(
    "client_conversations",
    metadata,
    Column("owner", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("created", Float, nullable=False),
    PrimaryKeyConstraint("owner", "id"),
)
client_items = Table(
    "client_items",
    metadata,
    Column("id", _COUNTER, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),
    Column("conversation_id", Text, nullable=False),
    Column("item_id", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("at", Float, nullable=False),
)
Index(
    "client_items_by_conversation",
    client_items.c.owner,
    client_items.c.conversation_id,
    client_items.c.item_id,
    unique=True,
)

# No foreign key: usage outlives the runs, which may be deleted. `day` counts days of UTC since 1970. A row that is
# `summed` is contained in `usage_days`.
model_usage = Table(
    "model_usage",
    metadata,
    Column("run_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("room", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("day", Integer, nullable=False),
    Column("model_calls", BigInteger, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False),
    Column("cost_usd", Float),
    Column("summed", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("run_id", "model"),
)
Index("model_usage_by_owner", model_usage.c.owner, model_usage.c.at)
Index("model_usage_by_time", model_usage.c.at)
Index(
    "model_usage_unsummed",
    model_usage.c.at,
    sqlite_where=text("NOT summed"),
    postgresql_where=text("NOT summed"),
)

# The sums of `model_usage` by day, which stay when its rows are deleted. `runs` counts each run once, under the first
# of its models; `model_runs` counts it under each.
usage_days = Table(
    "usage_days",
    metadata,
    Column("day", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("room", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("runs", BigInteger, nullable=False),
    Column("model_runs", BigInteger, nullable=False),
    Column("model_calls", BigInteger, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False),
    Column("cost_usd", Float),
    PrimaryKeyConstraint("day", "owner", "key_id", "room", "model"),
)

# Work that one gateway of a fleet does at a time: who does it until when, and up to which time it is done.
housekeeping = Table(
    "housekeeping",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("until", Float, nullable=False),
    Column("done", Float, nullable=False),
)

# Without an owner: foreign MCP servers belong to the gateway.
mcp_pins = Table(
    "mcp_pins",
    metadata,
    Column("server", Text, primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("pins", Text, nullable=False),
    Column("at", Float, nullable=False),
)

# Generated tools. A version never changes but for its state, until it is removed with its tool.
tool_versions = Table(
    "tool_versions",
    metadata,
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("tests", Text, nullable=False),
    Column("manifest", Text, nullable=False),
    Column("review", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("warnings", Text, nullable=False),
    Column("tier", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("parent", Integer),
    Column("run_id", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("approved_by", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    PrimaryKeyConstraint("owner", "name", "version"),
)
# The version of a tool that is in use. Names are unique in the gateway, as those of all tools.
active_tools = Table(
    "active_tools",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("since", Float, nullable=False),
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
# `next_tick` is None while a schedule is disabled. `held_until` is not 0 while a gateway handles that tick.
schedules = Table(
    "schedules",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("work", Text, nullable=False),
    Column("cron", Text, nullable=False),
    Column("timezone", Text, nullable=False),
    Column("overlap", Text, nullable=False),
    Column("misfire", Text, nullable=False),
    Column("webhook", Text),
    Column("key_id", Text),
    Column("enabled", Integer, nullable=False),
    Column("stopped", Text, nullable=False),
    Column("next_tick", Float),
    Column("held_until", Float, nullable=False, server_default="0"),
    Column("last_tick", Float),
    Column("last_run_id", Text),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
)
Index("schedules_by_name", schedules.c.owner, schedules.c.name, unique=True)
Index(
    "schedules_due",
    schedules.c.next_tick,
    sqlite_where=text("enabled = 1"),
    postgresql_where=text("enabled = 1"),
)
schedule_ticks = Table(
    "schedule_ticks",
    metadata,
    Column("schedule_id", Text, ForeignKey("schedules.id", ondelete="CASCADE"), nullable=False),
    Column("tick", Float, nullable=False),
    Column("owner", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("run_id", Text),
    Column("detail", Text, nullable=False),
    Column("missed", Integer, nullable=False, server_default="0"),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("schedule_id", "tick"),
)

# Stored before its run. No foreign key: the run may never start, and may be deleted before the delivery.
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("secret_name", Text),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("next_attempt", Float, nullable=False),
    Column("last_status", Integer),
    Column("last_error", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
)
Index("webhook_deliveries_by_owner", webhook_deliveries.c.owner, webhook_deliveries.c.created, webhook_deliveries.c.id)
Index("webhook_deliveries_by_run", webhook_deliveries.c.run_id)
Index(
    "webhook_deliveries_open",
    webhook_deliveries.c.next_attempt,
    sqlite_where=text("state = 'open'"),
    postgresql_where=text("state = 'open'"),
)
