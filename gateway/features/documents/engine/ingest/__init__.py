"""Ingestion: sources are fetched, parsed, split into chunks and written into the indexes of a collection."""
