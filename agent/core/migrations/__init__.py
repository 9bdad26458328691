"""Alembic's migrations of the store, and the revisions this version of Stepgate knows."""

from pathlib import Path

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011", "0012")
"""Every revision, oldest first. Kept here so that a start need not load Alembic; a test holds it to the scripts."""

HEAD = REVISIONS[-1]
"""The revision this version reads and writes."""

FRESH = Path(__file__).parent / "fresh.sql"
"""The schema of HEAD as one script, for empty SQLite files; `python -m agent.core.migrate` writes it."""
