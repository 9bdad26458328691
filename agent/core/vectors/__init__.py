"""Vectors: the `VectorIndex` port and its drivers. Memory uses it, and later the collections of documents."""

from agent.core.vectors.port import Entry, Hit, Item, Space, Stored, VectorIndex

__all__ = ["Entry", "Hit", "Item", "Space", "Stored", "VectorIndex"]
