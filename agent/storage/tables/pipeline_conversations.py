"""Conversations that build pipelines, with their sources and uncertainties."""

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, Table, Text, text

from agent.storage.tables.schema import metadata

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
