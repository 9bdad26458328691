"""The database's part of the composition root. It imports no engine: commands that only read tables start at once."""

from typing import TYPE_CHECKING, TypeAlias

from agent.core.errors import ConfigError
from agent.core.extras import EXTRAS, format_install_hint
from agent.core.settings import Settings
from agent.storage.journal_sqlite import SqliteStore, open_sqlite
from agent.storage.sql import PostgresClient, SqlClient, SqliteClient

if TYPE_CHECKING:
    from agent.storage.journal_postgres import PostgresStore

Storage: TypeAlias = "SqliteStore | PostgresStore"
"""Where runs, conversations, documents and keys are stored."""


async def open_store(settings: Settings) -> Storage:
    """Opens the store: PostgreSQL if AGENT_DATABASE_URL is set, else SQLite in the data folder."""
    if settings.database_url is None:
        return await open_sqlite(settings.database_path)
    url = settings.database_url.get_secret_value()
    if not url.startswith(("postgresql://", "postgres://")):
        raise ConfigError("AGENT_DATABASE_URL: must begin with postgresql:// (unset it for SQLite in the data folder)")
    if not EXTRAS["postgres"].is_installed:
        raise ConfigError(f"AGENT_DATABASE_URL: PostgreSQL needs an optional part; {format_install_hint('postgres')}")
    from agent.storage.journal_postgres import open_postgres  # noqa: PLC0415 - its driver is not needed for SQLite
    from agent.storage.postgres import IDLE_SECONDS, has_database_name  # noqa: PLC0415 - likewise

    if not has_database_name(url):
        raise ConfigError(
            "AGENT_DATABASE_URL: must name the database in which to create tables: postgresql://HOST/NAME"
        )
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    return await open_postgres(url, idle_s=min(IDLE_SECONDS, settings.lease_seconds / 2))


def build_statements(store: Storage) -> SqlClient:
    """Single SQL statements on the store's database."""
    if isinstance(store, SqliteStore):
        return SqliteClient(store.database)
    return PostgresClient(store.database)


def check_queue_settings(settings: Settings, store: Storage) -> "PostgresStore":
    """The store whose database has the queue. Raises `ConfigError` if it cannot be used."""
    if settings.database_url is None:
        raise ConfigError(
            "AGENT_DISPATCH: the queue is in PostgreSQL; set AGENT_DATABASE_URL=postgresql://..., or leave "
            "AGENT_DISPATCH at `local`"
        )
    if not EXTRAS["scale"].is_installed:
        raise ConfigError(f"AGENT_DISPATCH: the queue needs an optional part; {format_install_hint('scale')}")
    from agent.storage.journal_postgres import PostgresStore  # noqa: PLC0415 - its driver is not needed for SQLite

    if not isinstance(store, PostgresStore):
        raise ConfigError("AGENT_DISPATCH: the queue needs the store of AGENT_DATABASE_URL; this one was replaced")
    return store
