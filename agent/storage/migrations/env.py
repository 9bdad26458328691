"""Alembic's entry point: runs the migrations in the transaction of the caller's connection."""

from alembic import context

from agent.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite cannot alter columns in place; batch mode copies the table
    transactional_ddl=True,  # SQLite can roll back tables, though Alembic does not expect it to
)
with context.begin_transaction():
    context.run_migrations()
