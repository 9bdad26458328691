"""The revisions of the schema, and which of them this version can open.

The first migration creates every table as `agent/storage/tables/` defines it now. An empty database therefore gets
the current tables from it and is stamped with `HEAD`. Later migrations run only on databases that an earlier version
made. To change a table: change its module there, add a script to `versions/`, and run
`python -m agent.storage.migrate`.
"""

from pathlib import Path

from agent.core.errors import StoreError, StoreNewerError

FIRST = "r001"
REVISIONS = tuple(
    sorted(script.name.partition("_")[0] for script in Path(__file__).with_name("versions").glob("r*.py"))
)
"""Every revision, oldest first. They are read from the names of the scripts, so that a start does not load Alembic."""

HEAD = REVISIONS[-1]
"""The revision that this version reads and writes."""

SQUASHED = "0012"
"""The last revision that was squashed into `FIRST`. Its tables are the same, so it is only stamped."""
_OLDER = frozenset(f"{number:04}" for number in range(1, 12))

STAMP = f"UPDATE alembic_version SET version_num = '{FIRST}' WHERE version_num = '{SQUASHED}'"  # noqa: S608 - constants
"""Stamps a database at `SQUASHED`. Running it again changes nothing."""


def check_revision(revision: str, store: str, elsewhere: str) -> None:
    """Raises `StoreError` for a revision that is too old to open, and `StoreNewerError` for an unknown one.

    `store` names the store in the message, `elsewhere` says how to choose another one.
    """
    if revision in REVISIONS or revision == SQUASHED:
        return
    if revision in _OLDER:
        raise StoreError(
            f"{store} has the schema {revision} of an earlier version; open it once with the previous release of "
            f"Stepgate, which brings it to {SQUASHED}, then start this one again",
            agent_id="store",
        )
    raise StoreNewerError(
        f"{store} was written by a newer version of Stepgate (schema {revision}, this one knows {HEAD}); upgrade "
        f"Stepgate, or {elsewhere}",
        agent_id="store",
    )
