"""Vectors: the `VectorIndex` contract and its drivers, for the memory and for collections of documents."""

from agent.storage.vectors.port import Entry, Hit, Item, StoredVectors, VectorIndex

__all__ = ["Entry", "Hit", "Item", "StoredVectors", "VectorIndex"]
