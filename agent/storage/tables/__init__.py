"""The tables, one module a subject: the only definition of the schema.

Every row has an owner, directly or through its run. Values from untrusted sources are marked `tainted`. Times are UTC
seconds since 1970. How to change a table: `agent/storage/migrations/__init__.py`.
"""

from agent.storage.tables import (
    api_keys,
    audit,
    client_conversations,
    collections,
    fleet,
    ingestion_jobs,
    pipeline_conversations,
    runs,
    schedules,
    studio,
    tasks,
    usage,
    webhooks,
)
from agent.storage.tables.schema import metadata

__all__ = [
    "api_keys",
    "audit",
    "client_conversations",
    "collections",
    "fleet",
    "ingestion_jobs",
    "metadata",
    "pipeline_conversations",
    "runs",
    "schedules",
    "studio",
    "tasks",
    "usage",
    "webhooks",
]
