"""The stores of the composition root: where runs, vectors and documents lie, and who makes the vectors."""

import time
from typing import TYPE_CHECKING

from agent.core.config import Settings
from agent.core.embedder import HttpEmbedder
from agent.core.errors import ConfigError
from agent.core.journal_sqlite import SqliteStore, open_sqlite
from agent.core.llm.http import production_transport
from agent.core.vectors import VectorIndex
from agent.core.vectors.exact import ExactIndex
from agent.core.vectors.qdrant import QdrantIndex
from agent.core.vectors.sqlite import SqliteVectorRows
from agent.knowledge.documents import PostgresDocuments, SqliteDocuments
from agent.knowledge.lexical_sqlite import sqlite_index
from agent.knowledge.library import Library

if TYPE_CHECKING:
    from agent.core.journal_postgres import PostgresStore


async def open_store(settings: Settings) -> "SqliteStore | PostgresStore":
    """The store: PostgreSQL by URL, else SQLite in the data folder."""
    if settings.database_url is None:
        return await open_sqlite(settings.database_path)
    url = settings.database_url.get_secret_value()
    if not url.startswith(("postgresql://", "postgres://")):
        raise ConfigError("AGENT_DATABASE_URL: must begin with postgresql:// (unset it for SQLite in the data folder)")
    from agent.core.journal_postgres import open_postgres  # noqa: PLC0415 - its driver is not wanted for SQLite

    settings.data_dir.mkdir(parents=True, exist_ok=True)
    return await open_postgres(url)


def embedder_of(settings: Settings) -> HttpEmbedder | None:
    """The embeddings endpoint; None where none is set, and texts are found by their words."""
    if settings.embedder_url is None:
        return None
    key = settings.embedder_api_key.get_secret_value() if settings.embedder_api_key else None
    return HttpEmbedder(
        settings.embedder_url,
        settings.embedder_model,
        key,
        timeout_s=settings.embedder_timeout_s,
        transport=production_transport(),
    )


def vectors_of(settings: Settings, store: "SqliteStore | PostgresStore") -> VectorIndex:
    """Where vectors lie: a Qdrant, else the store."""
    if settings.qdrant_url is not None or settings.qdrant_path is not None:
        key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
        return QdrantIndex(url=settings.qdrant_url, api_key=key, path=settings.qdrant_path or ":memory:")
    if isinstance(store, SqliteStore):
        return ExactIndex(SqliteVectorRows(store.database))
    from agent.core.vectors.postgres import PostgresVectorRows  # noqa: PLC0415 - as for the store

    return ExactIndex(PostgresVectorRows(store.database))


def library_of(store: "SqliteStore | PostgresStore", vectors: VectorIndex, embedder: HttpEmbedder | None) -> Library:
    """The collections of documents, in the store."""
    if isinstance(store, SqliteStore):
        documents = SqliteDocuments(store.database, time.time)
        return Library(documents, sqlite_index(store.database), vectors, embedder, clock=time.time)
    from agent.knowledge.lexical_postgres import postgres_index  # noqa: PLC0415 - as for the store

    there = PostgresDocuments(store.database, time.time)
    return Library(there, postgres_index(store.database), vectors, embedder, clock=time.time)
