"""Texts to vectors: LiteLLM by a model's name, an ONNX model in a folder, or hashed words. An endpoint by URL is in
`agent.llm.embedder.http`, which loads httpx.
"""

from agent.llm.embedder.batches import MAX_BATCH
from agent.llm.embedder.hashed import LocalEmbedder
from agent.llm.embedder.local_model import OnnxEmbedder, check_model_folder
from agent.llm.embedder.port import MAX_TEXT_CHARS, Embedded, Embedder, LanguageAwareEmbedder
from agent.llm.embedder.sdk import LiteLLMEmbedder

__all__ = [
    "MAX_BATCH",
    "MAX_TEXT_CHARS",
    "Embedded",
    "Embedder",
    "LiteLLMEmbedder",
    "LanguageAwareEmbedder",
    "LocalEmbedder",
    "OnnxEmbedder",
    "check_model_folder",
]
