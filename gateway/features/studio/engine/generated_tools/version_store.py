"""`ToolVersionStore`: the versions of generated tools, and which one is in use. Each change is one transaction."""

import json
import secrets
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Final

from agent.core.errors import ConflictError, NotFoundError
from agent.storage.sql import Row, SqlClient, SqlStatement, UnchangedError
from gateway.features.studio.engine.errors import VersionConflictError
from gateway.features.studio.engine.generated_tools.models import CodeReview, Manifest, ToolVersion

_COLUMNS = (
    "owner, name, version, sha256, code, tests, manifest, review, description, warnings, tier, state, parent, run_id, "
    "author, approved_by, created_at"
)
COLUMN_FIELDS: Final = frozenset((*_COLUMNS.split(", "), "is_active"))
"""Fields of a version that the tables have. The others hold JSON and are stored with the review."""
_SELECT = (
    f"SELECT {', '.join('v.' + name.strip() for name in _COLUMNS.split(','))}, "  # noqa: S608 - constants
    "CASE WHEN a.version IS NULL THEN 0 ELSE 1 END FROM tool_versions v "
    "LEFT JOIN active_tools a ON a.name = v.name AND a.owner = v.owner AND a.version = v.version"
)
_ACTIVATE = (
    "INSERT INTO active_tools (name, owner, version, sha256, since) SELECT v.name, v.owner, v.version, v.sha256, ? "
    "FROM tool_versions v WHERE v.owner = ? AND v.name = ? AND v.version = ? AND v.decision = ? "
    "ON CONFLICT (name) DO UPDATE SET version = excluded.version, sha256 = excluded.sha256, since = excluded.since "
    "WHERE active_tools.owner = excluded.owner"
)
"""Changes nothing where another owner took the name at the same moment: PostgreSQL sees that only here."""
_IS_FREE = "NOT EXISTS (SELECT 1 FROM active_tools a WHERE a.name = ? AND a.owner <> ?)"


class ToolVersionStore:
    """Reads and writes versions. `clock` gives UTC seconds since 1970. Every method raises `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def add(self, version: ToolVersion) -> ToolVersion:
        """Stores a new version under the next free number, and returns it with the number and the time.

        Raises `ConflictError` if another one took the number at the same moment.
        """
        made = replace(version, created_at=self._clock())
        review = made.review.model_dump(mode="json") | {name: getattr(made, name) for name in _list_further_fields()}
        rows = await self._statements.write(
            f"INSERT INTO tool_versions ({_COLUMNS}, decision) "  # noqa: S608 - constants
            "SELECT ?, ?, COALESCE(MAX(version), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, CAST(? AS INTEGER), ?, ?, ?, ?, '' "
            "FROM tool_versions WHERE owner = ? AND name = ? ON CONFLICT DO NOTHING RETURNING version",
            made.owner, made.name, made.sha256, made.code, json.dumps(made.tests), made.manifest.model_dump_json(),
            json.dumps(review), made.description, json.dumps(made.warnings), made.tier, made.state,
            made.parent, made.run_id, made.author, made.approved_by, made.created_at, made.owner, made.name,
        )  # fmt: skip
        if not rows:
            raise ConflictError(f"the tool {made.name!r} is being changed by somebody else; try again")
        return replace(made, version=int(rows[0][0]))

    async def list_newest(self, owner: str | None) -> list[ToolVersion]:
        """The newest version of every tool of an owner, or of all owners, by name."""
        rows = await self._statements.read(
            f"{_SELECT} WHERE (? = 1 OR v.owner = ?) AND v.version = "  # noqa: S608 - a constant
            "(SELECT MAX(w.version) FROM tool_versions w WHERE w.owner = v.owner AND w.name = v.name) "
            "ORDER BY v.name, v.owner",
            int(owner is None), owner or "",
        )  # fmt: skip
        return [_parse(row) for row in rows]

    async def list_versions(self, owner: str, name: str) -> list[ToolVersion]:
        """Every version of a tool, the newest first. Raises `NotFoundError` if there is none."""
        rows = await self._statements.read(
            f"{_SELECT} WHERE v.owner = ? AND v.name = ? ORDER BY v.version DESC", owner, name
        )
        if not rows:
            message = f"there is no generated tool {name[:100]!r}; `GET /v1/studio/tools` lists them"
            raise NotFoundError(message, stage="identifier")
        return [_parse(row) for row in rows]

    async def list_active(self) -> list[ToolVersion]:
        """The versions in use, of all owners, by name."""
        return [
            _parse(row) for row in await self._statements.read(f"{_SELECT} WHERE a.version IS NOT NULL ORDER BY v.name")
        ]

    async def read_stamp(self) -> tuple[Row, ...]:
        """A value that changes whenever another version is in use."""
        return tuple(await self._statements.read("SELECT name, owner, version, sha256 FROM active_tools ORDER BY name"))

    async def is_taken(self, owner: str, name: str) -> bool:
        """Whether another owner's tool of this name is in use."""
        return bool(
            await self._statements.read("SELECT 1 FROM active_tools WHERE name = ? AND owner <> ?", name, owner)
        )

    async def activate(self, version: ToolVersion, *, by: str, sha256: str) -> None:
        """Puts a version into use. A staged one becomes `applied`; each approval is used once.

        Raises `VersionConflictError` if the code or manifest is not the approved one, `ConflictError` if the version
        was decided about already or its name is taken.
        """
        if sha256 != version.sha256:
            raise VersionConflictError(f"the tool {version.name!r}, version {version.version},", version.sha256)
        decision = secrets.token_hex(8)
        place = (version.owner, version.name, version.version)
        try:
            await self._statements.write_all(
                SqlStatement(
                    "UPDATE tool_versions SET state = 'applied', approved_by = ?, decision = ? WHERE owner = ? "  # noqa: S608 - a constant
                    f"AND name = ? AND version = ? AND sha256 = ? AND state = ? AND {_IS_FREE}",
                    (by, decision, *place, sha256, version.state, version.name, version.owner),
                    must_change=True,
                ),
                SqlStatement(_ACTIVATE, (self._clock(), *place, decision), must_change=True),
            )
        except UnchangedError as error:
            raise ConflictError(
                f"the tool {version.name!r}, version {version.version}, was decided on in the meantime, or its name is "
                "taken; read it again",
                agent_id="studio",
                stage="state",
            ) from error

    async def discard(self, version: ToolVersion, *, by: str) -> None:
        """Discards a staged version. Raises `ConflictError` if it is staged no more."""
        rows = await self._statements.write(
            "UPDATE tool_versions SET state = 'discarded', approved_by = ? WHERE owner = ? AND name = ? "
            "AND version = ? AND state = 'staged' RETURNING version",
            by, version.owner, version.name, version.version,
        )  # fmt: skip
        if not rows:
            raise ConflictError(
                f"the tool {version.name!r}, version {version.version}, is no longer staged",
                agent_id="studio",
                stage="state",
            )

    async def remove(self, owner: str, name: str) -> int:
        """Deletes every version of a tool and returns their number."""
        counts = await self._statements.write_all(
            SqlStatement("DELETE FROM active_tools WHERE owner = ? AND name = ?", (owner, name)),
            SqlStatement("DELETE FROM tool_versions WHERE owner = ? AND name = ?", (owner, name)),
        )
        return counts[1]


def _parse(row: Row) -> ToolVersion:
    (owner, name, version, sha256, code, tests, manifest, review, description, warnings, tier, state, parent, run_id,
     author, approved_by, created_at, active) = row  # fmt: skip
    stored = json.loads(review)
    more = {name: stored.pop(name) for name in _list_further_fields() if name in stored}
    # What a run asked for before there was this mark may be anybody's text. An applied version was read by a person.
    more = {"from_outside": bool(run_id)} | more
    more["from_outside"] = more["from_outside"] and state != "applied"
    return ToolVersion(
        str(owner), str(name), int(version), str(sha256), str(code), tuple(json.loads(tests)),
        Manifest.model_validate_json(manifest), CodeReview.model_validate(stored), str(description), tier, state,
        float(created_at), None if parent is None else int(parent), tuple(json.loads(warnings)), str(run_id),
        str(author), str(approved_by), bool(active), **more,
    )  # fmt: skip


def _list_further_fields() -> list[str]:
    return [field.name for field in fields(ToolVersion) if field.name not in COLUMN_FIELDS]
