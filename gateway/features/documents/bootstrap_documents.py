"""The documents' part of the composition root: collections, connectors and jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agent.core.errors import ConfigError
from agent.core.extras import EXTRAS, format_install_hint
from agent.core.settings import Settings
from agent.llm.embedder import Embedder
from agent.net import SafeClient
from agent.storage.audit import NO_AUDIT, AuditLog
from agent.storage.credentials import Credentials
from agent.storage.journal_sqlite import SqliteStore
from agent.storage.objects import ObjectStore
from agent.storage.objects.folder import FolderObjectStore
from agent.storage.vectors import VectorIndex
from gateway.bootstrap_database import Storage, build_statements
from gateway.feature_host import FeatureHost
from gateway.features.documents.engine.ingest.collection_store import CollectionStore
from gateway.features.documents.engine.ingest.connectors.drive import DriveConnector
from gateway.features.documents.engine.ingest.connectors.local import LocalConnector
from gateway.features.documents.engine.ingest.connectors.port import Connector
from gateway.features.documents.engine.ingest.connectors.source_client import SourceClient
from gateway.features.documents.engine.ingest.connectors.web import WebConnector
from gateway.features.documents.engine.ingest.corpus_index import CorpusIndexer
from gateway.features.documents.engine.ingest.job_runner import IngestJobs
from gateway.features.documents.engine.ingest.jobs import JobStore
from gateway.features.documents.engine.ingest.later_drops import CollectionDrops
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.ingest.source_pairings import SourcePairings
from gateway.features.documents.engine.ingest.source_store import SourceStore
from gateway.features.documents.engine.ingest.uploads import Uploads
from gateway.features.documents.engine.search.documents import DocumentStore
from gateway.features.documents.engine.search.lexical import LexicalIndex
from gateway.features.documents.engine.search.lexical_sqlite import create_sqlite_index
from gateway.features.documents.engine.search.models import SourceType
from gateway.features.documents.installed_readers import add_installed_connectors, register_installed_parser


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents that the gateway searches, and the jobs that ingest them."""

    connectors: Mapping[SourceType, Connector]
    library: Library
    corpus: CorpusIndexer
    jobs: IngestJobs
    sources: SourceStore
    drops: CollectionDrops


def build_documents(host: FeatureHost) -> Documents:
    """The documents of the gateway, after the parsers and connectors of installed packages. Raises
    `ConfigError`."""
    context, settings, memory = host.context, host.settings, host.memory
    store, client = context.store, context.client
    context.installed.register("stepgate.parsers", register_installed_parser)
    connectors = add_installed_connectors(context.installed, build_connectors(settings, client), client)
    library = build_library(settings, store, memory.vectors, memory.embedder, client, context.audit, connectors)
    jobs = IngestJobs(JobStore(context.statements, store.clock), library, settings.readable_roots)
    context.stack.push_async_callback(jobs.aclose)
    pairings = SourcePairings(context.statements, Credentials(settings.credentials_file))
    sources = SourceStore(context.statements, settings.readable_roots, store.clock, context.audit, pairings)
    drops = CollectionDrops(library)
    context.stack.push_async_callback(drops.aclose)
    return Documents(connectors, library, CorpusIndexer(library.resources), jobs, sources, drops)


def build_library(
    settings: Settings,
    store: Storage,
    vectors: VectorIndex,
    embedder: Embedder | None,
    client: SafeClient,
    audit: AuditLog = NO_AUDIT,
    connectors: Mapping[SourceType, Connector] | None = None,
) -> Library:
    """The collections of documents. Network sources are read through `client`."""
    statements, credentials = build_statements(store), Credentials(settings.credentials_file)
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
        credentials=credentials,
        pairings=SourcePairings(statements, credentials),
    )


def build_connectors(settings: Settings, client: SafeClient) -> dict[SourceType, Connector]:
    """The connector for each type of source."""
    source_client, credentials = SourceClient(client), Credentials(settings.credentials_file)
    web = WebConnector(source_client, credentials=credentials)
    return {"local": LocalConnector(), "web": web, "gdrive": DriveConnector(source_client, credentials)}


def build_object_store(settings: Settings) -> ObjectStore:
    """The store of uploaded files: the data folder, another folder, or an S3-compatible store.

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
