"""The sub-agents of the documents."""

from gateway.features.documents.engine.subagents.researcher import Researcher

__all__ = [
    "Researcher",
]
