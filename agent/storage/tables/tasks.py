"""Stored tasks with their runs."""

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, Table, Text, text

from agent.storage.tables.schema import metadata

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
