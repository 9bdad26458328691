"""API keys, what they reserve, and the answers to requests that may be repeated."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, PrimaryKeyConstraint, Table, Text

from agent.storage.tables.schema import metadata

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
