"""The engine inside: a GGUF file served by llama.cpp (`xllamacpp`, extra `local`) in a child process of the gateway."""

from gateway.local_engine.client import LocalModelClient
from gateway.local_engine.engine import EngineOptions, EngineState, LocalEngine

__all__ = ["EngineOptions", "EngineState", "LocalEngine", "LocalModelClient"]
