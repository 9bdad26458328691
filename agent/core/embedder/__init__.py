"""Texts to vectors: an endpoint by URL, LiteLLM by a model's name, a model in a folder, or hashed words without any."""

from agent.core.embedder.batches import MAX_BATCH
from agent.core.embedder.hashed import LocalEmbedder
from agent.core.embedder.http import HttpEmbedder
from agent.core.embedder.local_model import OnnxEmbedder, checked_folder
from agent.core.embedder.port import MAX_TEXT_CHARS, Embedded, Embedder, Literate
from agent.core.embedder.sdk import LiteLLMEmbedder

__all__ = [
    "MAX_BATCH",
    "MAX_TEXT_CHARS",
    "Embedded",
    "Embedder",
    "HttpEmbedder",
    "LiteLLMEmbedder",
    "Literate",
    "LocalEmbedder",
    "OnnxEmbedder",
    "checked_folder",
]
