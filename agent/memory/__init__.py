"""The memory: what users asked to remember, found by words and by vectors. `MemoryStore` is its only door."""

from agent.memory.store import MAX_CHARS, Kind, Memory, MemorySearchResult, MemoryStore, format_exchange

__all__ = [
    "Kind",
    "MAX_CHARS",
    "Memory",
    "MemorySearchResult",
    "MemoryStore",
    "format_exchange",
]
