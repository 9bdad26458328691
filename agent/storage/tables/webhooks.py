"""Posts about the ends of runs."""

from sqlalchemy import Column, Float, Index, Integer, Table, Text, text

from agent.storage.tables.schema import metadata

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
