"""Queries on table files: DuckDB in a process of its own. The worker imports nothing else of the product."""
