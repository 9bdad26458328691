"""The stores of the composition root: where runs, vectors and documents lie, and who makes the vectors."""

import time
from typing import TYPE_CHECKING

from agent.core.audit import UNRECORDED, AuditLog
from agent.core.config import Settings
from agent.core.credentials import Credentials
from agent.core.embedder import Embedder, HttpEmbedder, LiteLLMEmbedder, OnnxEmbedder, checked_folder
from agent.core.embedder.http import pooled_transport
from agent.core.errors import ConfigError
from agent.core.journal_sqlite import SqliteStore, open_sqlite
from agent.core.language import LanguageDetector
from agent.core.net import SafeClient
from agent.core.statements import PostgresStatements, SqliteStatements, Statements
from agent.core.tasks_store import TaskStore
from agent.core.vectors import VectorIndex
from agent.core.vectors.exact import ExactIndex
from agent.core.vectors.qdrant import QdrantIndex
from agent.core.vectors.sqlite import SqliteVectorRows
from agent.execution.subagents import SubAgentStaff
from agent.knowledge.collection_store import CollectionStore
from agent.knowledge.connectors.base import Wire
from agent.knowledge.connectors.drive import DriveConnector
from agent.knowledge.connectors.local import LocalConnector
from agent.knowledge.connectors.port import Connector
from agent.knowledge.connectors.web import WebConnector
from agent.knowledge.corpus_index import CorpusIndexer
from agent.knowledge.documents import DocumentStore
from agent.knowledge.lexical import LexicalIndex
from agent.knowledge.lexical_sqlite import sqlite_index
from agent.knowledge.library import Library
from agent.knowledge.models import SourceType
from agent.subagents.base import FindSource, Materials
from agent.subagents.sources import by_words
from gateway.meters import LocalMeters, Meters, SharedMeters

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
    from agent.core.postgres import names_database  # noqa: PLC0415 - likewise

    if not names_database(url):
        told = "must name the database, as in postgresql://HOST/DATABASE: tables are made in it"
        raise ConfigError(f"AGENT_DATABASE_URL: {told}")
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    return await open_postgres(url)


def embedder_of(settings: Settings) -> Embedder | None:
    """The embedder that is set: an endpoint by its URL, a model in a folder, one of LiteLLM's by its name. None where
    none is, and texts are found by their words. `ConfigError` for two, and for a folder that cannot be it."""
    key = settings.embedder_api_key.get_secret_value() if settings.embedder_api_key else None
    if settings.embedder_model_dir is not None:
        if settings.embedder_url is not None or settings.embedder_model is not None:
            raise ConfigError("AGENT_EMBEDDER_MODEL_DIR: unset it, or AGENT_EMBEDDER_URL and AGENT_EMBEDDER_MODEL")
        return OnnxEmbedder(checked_folder(settings.embedder_model_dir))
    if settings.embedder_url is None:
        if settings.embedder_model is None:
            return None
        return LiteLLMEmbedder(settings.embedder_model, key, timeout_s=settings.embedder_timeout_s)
    return HttpEmbedder(
        settings.embedder_url,
        settings.embedder_model,
        key,
        timeout_s=settings.embedder_timeout_s,
        transport=pooled_transport(),
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


def library_of(
    settings: Settings,
    store: "SqliteStore | PostgresStore",
    vectors: VectorIndex,
    embedder: Embedder | None,
    client: SafeClient,
    audit: AuditLog = UNRECORDED,
) -> Library:
    """The collections of documents, in the store; sources of the net are read through `client`."""
    statements = statements_of(store)
    return Library(
        DocumentStore(statements, time.time),
        _lexical_of(store),
        vectors,
        embedder,
        collections=CollectionStore(statements, time.time),
        connectors=connectors_of(settings, client),
        folder=settings.data_dir,
        max_upload_bytes=settings.max_upload_bytes,
        clock=time.time,
        audit=audit,
        mode=settings.retrieval_mode,
        credentials=Credentials(settings.credentials_file),
    )


def corpus_of(store: "SqliteStore | PostgresStore", vectors: VectorIndex, embedder: Embedder | None) -> CorpusIndexer:
    """What puts corpora into collections, in the store."""
    statements = statements_of(store)
    documents, collections = DocumentStore(statements, time.time), CollectionStore(statements, time.time)
    return CorpusIndexer(documents, _lexical_of(store), vectors, embedder, collections, clock=time.time)


def connectors_of(settings: Settings, client: SafeClient) -> dict[SourceType, Connector]:
    """Who reads which kind of source."""
    wire = Wire(client)
    drive = DriveConnector(wire, Credentials(settings.credentials_file))
    return {"local": LocalConnector(), "web": WebConnector(wire), "gdrive": drive}


def staff_of(
    settings: Settings,
    library: Library,
    client: SafeClient,
    languages: LanguageDetector,
    find_source: FindSource | None = None,
) -> SubAgentStaff:
    """The sub-agents, and what they work with; local files are read beneath the readable roots. Sources are known by
    their own names unless `find_source` knows others."""
    materials = Materials(
        library,
        connectors_of(settings, client),
        settings.readable_roots,
        settings.data_dir / "workspaces",
        languages,
        find_source or by_words(settings.readable_roots),
    )
    return SubAgentStaff(materials)


def statements_of(store: "SqliteStore | PostgresStore") -> Statements:
    """Single statements on the store's database."""
    if isinstance(store, SqliteStore):
        return SqliteStatements(store.database)
    return PostgresStatements(store.database)


def meters_of(settings: Settings) -> Meters:
    """Where limits of keys are counted: in Redis, for all gateways on it, where one is set; else in this process."""
    if settings.redis_url is None:
        return LocalMeters()
    from gateway.meters_redis import RedisMeters  # noqa: PLC0415 - 0.1 s of start-up that most need not pay

    return SharedMeters(RedisMeters(settings.redis_url.get_secret_value(), settings.redis_prefix), LocalMeters())


def _lexical_of(store: "SqliteStore | PostgresStore") -> LexicalIndex:
    if isinstance(store, SqliteStore):
        return sqlite_index(store.database)
    from agent.knowledge.lexical_postgres import postgres_index  # noqa: PLC0415 - as for the store

    return postgres_index(store.database)


def tasks_of(store: "SqliteStore | PostgresStore") -> TaskStore:
    """The tasks, in the store."""
    if isinstance(store, SqliteStore):
        return TaskStore(SqliteStatements(store.database), time.time)
    return TaskStore(PostgresStatements(store.database), time.time)
