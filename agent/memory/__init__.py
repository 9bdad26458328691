"""The memory store: what users asked to remember."""
