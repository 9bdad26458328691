"""The memory's part of the composition root: vectors, the embedder, and what is remembered."""

from dataclasses import dataclass

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from agent.llm.embedder import Embedder, LiteLLMEmbedder, OnnxEmbedder, check_model_folder
from agent.run_context.memory import MemoryStore
from agent.storage.journal_sqlite import SqliteStore
from agent.storage.vectors import VectorIndex
from agent.storage.vectors.exact import ExactIndex
from agent.storage.vectors.sqlite import SqliteVectorRows
from gateway.bootstrap_context import BuildContext
from gateway.bootstrap_database import Storage


@dataclass(frozen=True, slots=True)
class BuiltMemory:
    """The memory, with the vectors and the embedder that it shares with features."""

    vectors: VectorIndex
    embedder: Embedder | None
    """The configured embedder; None if texts are found by their words only."""
    store: MemoryStore


def build_memory(context: BuildContext) -> BuiltMemory:
    """The memory of the gateway. Raises `ConfigError`."""
    vectors, embedder = build_vector_index(context.settings, context.store), build_embedder(context.settings)
    store = MemoryStore(vectors, embedder, context.store.clock, context.audit)
    context.stack.push_async_callback(store.close)
    return BuiltMemory(vectors, embedder, store)


def build_vector_index(settings: Settings, store: Storage) -> VectorIndex:
    """The vector index: Qdrant if configured, else the store, with pgvector where the database has it."""
    if settings.qdrant_url is not None or settings.qdrant_path is not None:
        key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
        from agent.storage.vectors.qdrant import QdrantIndex  # noqa: PLC0415 - httpx, 5 MB

        return QdrantIndex(url=settings.qdrant_url, api_key=key, path=settings.qdrant_path or ":memory:")
    if isinstance(store, SqliteStore):
        return ExactIndex(SqliteVectorRows(store.database))
    from agent.storage.vectors.pgvector import PgvectorIndex  # noqa: PLC0415 - as for the store

    return PgvectorIndex(store.database)


def build_embedder(settings: Settings) -> Embedder | None:
    """The configured embedder: an endpoint by URL, a model in a folder, or a LiteLLM model by name.

    Returns None if none is set; texts are then found by their words. Raises `ConfigError` for more than one, and for a
    folder that holds no model.
    """
    key = settings.embedder_api_key.get_secret_value() if settings.embedder_api_key else None
    if settings.embedder_model_dir is not None:
        if settings.embedder_url is not None or settings.embedder_model is not None:
            raise ConfigError(
                "AGENT_EMBEDDER_MODEL_DIR: unset it, or unset AGENT_EMBEDDER_URL and AGENT_EMBEDDER_MODEL"
            )
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
