"""How documents and memories are found."""

from pydantic import BaseModel, Field, SecretStr

from agent.core.models import RetrievalMode
from agent.core.settings.field_types import HomePath, HttpUrl


class SearchSettings(BaseModel):
    """How documents and memories are found."""

    embedder_url: HttpUrl | None = Field(
        default=None,
        description="OpenAI-style embeddings endpoint; unset: memories and documents are found by their words",
    )
    embedder_model: str | None = Field(
        default=None,
        description="model of that endpoint; without a URL, a LiteLLM name such as openai/text-embedding-3-small",
    )
    embedder_model_dir: HomePath | None = Field(
        default=None,
        description="folder with an exported ONNX sentence encoder that runs in this process (extra `local-embedder`)",
    )
    embedder_api_key: SecretStr | None = Field(default=None, description="bearer key of that endpoint or provider")
    qdrant_url: HttpUrl | None = Field(
        default=None, description="Qdrant server that stores the vectors; unset: the store"
    )
    qdrant_api_key: SecretStr | None = Field(default=None, description="API key of that server")
    qdrant_path: str | None = Field(
        default=None, description="folder for qdrant-client's local mode (one process only), if no server is set"
    )
    retrieval_mode: RetrievalMode = Field(
        default="hybrid_rerank",
        description=(
            "how documents are searched if neither the request nor the room says it: by words, by "
            "vectors, by both, or by both with reranking; without usable vectors, by words, and the "
            "result says so"
        ),
    )
