"""The documents' part of the composition root: collections, memories, vectors, the embedder, connectors and jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agent.core.errors import ConfigError
from agent.core.extras import EXTRAS, format_install_hint
from agent.core.settings import Settings
from agent.llm.embedder import Embedder, LiteLLMEmbedder, OnnxEmbedder, check_model_folder
from agent.memory.store import MemoryStore
from agent.net import SafeClient
from agent.storage.audit import NO_AUDIT, AuditLog
from agent.storage.credentials import Credentials
from agent.storage.journal_sqlite import SqliteStore
from agent.storage.objects import ObjectStore
from agent.storage.objects.folder import FolderObjectStore
from agent.storage.vectors import VectorIndex
from agent.storage.vectors.exact import ExactIndex
from agent.storage.vectors.sqlite import SqliteVectorRows
from gateway.bootstrap_context import BuildContext
from gateway.bootstrap_database import Storage, build_statements
from gateway.features.documents.engine.ingest.collection_store import CollectionStore
from gateway.features.documents.engine.ingest.collections import Library
from gateway.features.documents.engine.ingest.connectors.drive import DriveConnector
from gateway.features.documents.engine.ingest.connectors.local import LocalConnector
from gateway.features.documents.engine.ingest.connectors.port import Connector
from gateway.features.documents.engine.ingest.connectors.source_client import SourceClient
from gateway.features.documents.engine.ingest.connectors.web import WebConnector
from gateway.features.documents.engine.ingest.corpus_index import CorpusIndexer
from gateway.features.documents.engine.ingest.job_runner import IngestJobs
from gateway.features.documents.engine.ingest.jobs import JobStore
from gateway.features.documents.engine.ingest.uploads import Uploads
from gateway.features.documents.engine.search.documents import DocumentStore
from gateway.features.documents.engine.search.lexical import LexicalIndex
from gateway.features.documents.engine.search.lexical_sqlite import create_sqlite_index
from gateway.features.documents.engine.search.models import SourceType


@dataclass(frozen=True, slots=True)
class Documents:
    """What the gateway remembers and searches, and the jobs that ingest it."""

    embedder: Embedder | None
    """The configured embedder; None if texts are found by their words only."""
    memory: MemoryStore
    connectors: Mapping[SourceType, Connector]
    library: Library
    corpus: CorpusIndexer
    jobs: IngestJobs


def build_documents(context: BuildContext) -> Documents:
    """Returns the documents of the gateway. Raises `ConfigError`."""
    settings, store, audit, client = context.settings, context.store, context.audit, context.client
    vectors, embedder = build_vector_index(settings, store), build_embedder(settings)
    memory = MemoryStore(vectors, embedder, store.clock, audit)
    context.stack.push_async_callback(memory.close)
    connectors = context.installed.add_connectors(build_connectors(settings, client), client)
    library = build_library(settings, store, vectors, embedder, client, audit, connectors)
    jobs = IngestJobs(JobStore(context.statements, store.clock), library, settings.readable_roots)
    context.stack.push_async_callback(jobs.aclose)
    corpus = build_corpus_indexer(settings, store, vectors, embedder)
    return Documents(embedder, memory, connectors, library, corpus, jobs)


def build_library(
    settings: Settings,
    store: Storage,
    vectors: VectorIndex,
    embedder: Embedder | None,
    client: SafeClient,
    audit: AuditLog = NO_AUDIT,
    connectors: Mapping[SourceType, Connector] | None = None,
) -> Library:
    """Returns the collections of documents. Network sources are read through `client`."""
    statements = build_statements(store)
    return Library(
        DocumentStore(statements, store.clock),
        _build_lexical_index(settings, store),
        vectors,
        embedder,
        collections=CollectionStore(statements, store.clock),
        connectors=connectors or build_connectors(settings, client),
        folder=settings.data_dir,
        uploads=Uploads(build_object_store(settings), settings.max_upload_bytes),
        clock=store.clock,
        audit=audit,
        mode=settings.retrieval_mode,
        credentials=Credentials(settings.credentials_file),
    )


def build_corpus_indexer(
    settings: Settings, store: Storage, vectors: VectorIndex, embedder: Embedder | None
) -> CorpusIndexer:
    """Returns the indexer that loads corpora into collections."""
    statements = build_statements(store)
    documents, collections = DocumentStore(statements, store.clock), CollectionStore(statements, store.clock)
    return CorpusIndexer(
        documents, _build_lexical_index(settings, store), vectors, embedder, collections, clock=store.clock
    )


def build_connectors(settings: Settings, client: SafeClient) -> dict[SourceType, Connector]:
    """Returns the connector for each type of source."""
    source_client, credentials = SourceClient(client), Credentials(settings.credentials_file)
    web = WebConnector(source_client, credentials=credentials)
    return {"local": LocalConnector(), "web": web, "gdrive": DriveConnector(source_client, credentials)}


def build_vector_index(settings: Settings, store: Storage) -> VectorIndex:
    """Returns the vector index: Qdrant if configured, else the store, with pgvector where the database has it."""
    if settings.qdrant_url is not None or settings.qdrant_path is not None:
        key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
        from agent.storage.vectors.qdrant import QdrantIndex  # noqa: PLC0415 - httpx, 5 MB

        return QdrantIndex(url=settings.qdrant_url, api_key=key, path=settings.qdrant_path or ":memory:")
    if isinstance(store, SqliteStore):
        return ExactIndex(SqliteVectorRows(store.database))
    from agent.storage.vectors.pgvector import PgvectorIndex  # noqa: PLC0415 - as for the store

    return PgvectorIndex(store.database)


def build_embedder(settings: Settings) -> Embedder | None:
    """Returns the configured embedder: an endpoint by URL, a model in a folder, or a LiteLLM model by name.

    Returns None if none is set; texts are then found by their words. Raises `ConfigError` for more than one, and for a
    folder that holds no model.
    """
    key = settings.embedder_api_key.get_secret_value() if settings.embedder_api_key else None
    if settings.embedder_model_dir is not None:
        if settings.embedder_url is not None or settings.embedder_model is not None:
            raise ConfigError("AGENT_EMBEDDER_MODEL_DIR: unset it, or AGENT_EMBEDDER_URL and AGENT_EMBEDDER_MODEL")
        return OnnxEmbedder(check_model_folder(settings.embedder_model_dir))
    if settings.embedder_url is None:
        if settings.embedder_model is None:
            return None
        return LiteLLMEmbedder(settings.embedder_model, key, timeout_s=settings.embedder_timeout_s)
    from agent.llm.embedder.http import HttpEmbedder, build_pooled_transport  # noqa: PLC0415 - httpx, 5 MB

    return HttpEmbedder(
        settings.embedder_url,
        settings.embedder_model,
        key,
        timeout_s=settings.embedder_timeout_s,
        transport=build_pooled_transport(),
    )


def build_object_store(settings: Settings) -> ObjectStore:
    """Returns the store of uploaded files: the data folder, another folder, or an S3-compatible store.

    Raises `ConfigError` for an invalid AGENT_OBJECTS_URL, and if the extra is missing.
    """
    if settings.objects_url is None:
        return FolderObjectStore(settings.data_dir)
    parts = urlsplit(settings.objects_url)
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return FolderObjectStore(Path(unquote(parts.path)), is_shared=True)
    if parts.scheme != "s3" or not parts.netloc or "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            "AGENT_OBJECTS_URL: must be s3://BUCKET/PREFIX or file:///FOLDER; AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY take its key"
        )
    if not EXTRAS["scale"].is_installed:
        raise ConfigError(f"AGENT_OBJECTS_URL: s3:// needs the extra `scale`; {format_install_hint('scale')}")
    from agent.storage.objects.s3 import S3ObjectStore  # noqa: PLC0415 - an extra

    secret = settings.objects_secret
    return S3ObjectStore(
        parts.netloc,
        parts.path.strip("/"),
        endpoint=settings.objects_endpoint,
        region=settings.objects_region,
        key_id=settings.objects_key_id,
        secret=secret.get_secret_value() if secret is not None else None,
    )


def _build_lexical_index(settings: Settings, store: Storage) -> LexicalIndex:
    if isinstance(store, SqliteStore):
        return create_sqlite_index(store.database)
    from gateway.features.documents.engine.search.lexical_postgres import create_postgres_index  # noqa: PLC0415 - as for the store

    return create_postgres_index(store.database, settings.data_dir)
