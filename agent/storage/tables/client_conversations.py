"""Conversations that clients of the Responses API make."""

from sqlalchemy import Column, Float, Index, PrimaryKeyConstraint, Table, Text

from agent.storage.tables.schema import COUNTER, metadata

# Conversations that clients of the Responses API make, with the items they add.
client_conversations = Table(
    "client_conversations",
    metadata,
    Column("owner", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("created", Float, nullable=False),
    # The run that the next message follows, chosen at `head_at`; a newer run replaces it.
    Column("head", Text),
    Column("head_at", Float),
    PrimaryKeyConstraint("owner", "id"),
)

client_items = Table(
    "client_items",
    metadata,
    Column("id", COUNTER, primary_key=True, autoincrement=True),
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
