"""Retrieval over collections: lexical search, vector search, fusion, scoring."""
