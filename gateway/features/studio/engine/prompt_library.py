"""`PromptLibrary`: prompts that owners keep under a name, each change as a version of its own."""

import json
import re
import time
from collections.abc import Callable, Sequence
from typing import Final

from agent.core.errors import NotFoundError
from agent.core.surrogates import to_storable_text
from agent.storage.audit import AuditEvent, AuditLog
from agent.storage.sql import Row, SqlClient
from gateway.features.studio.engine.errors import ValidationError, VersionConflictError
from gateway.features.studio.engine.prompt import Prompt, PromptChange
from gateway.features.studio.engine.room_checks import MAX_DESCRIPTION_CHARS, MAX_PROMPT_CHARS

MAX_PROMPTS = 500
"""Prompts of one owner. They are listed whole, for people and for MCP clients."""
MAX_VERSIONS = 100
"""Versions of one prompt that are kept; the oldest ones are dropped."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_COLUMNS = "name, version, text, description, by_whom, at, fields"
COLUMN_FIELDS: Final = frozenset(("name", "version", "text", "description", "by", "at"))
"""Fields of a prompt that have a column. The others are in the JSON of the column `fields`."""


class PromptLibrary:
    """The prompts of all owners. Methods raise `StoreError`. Prompts of other owners do not exist for a caller."""

    def __init__(self, statements: SqlClient, audit: AuditLog, clock: Callable[[], float] = time.time) -> None:
        self._statements, self._audit, self._clock = statements, audit, clock

    async def list_prompts(self, owner: str) -> list[Prompt]:
        """The newest version of each prompt, in order of name."""
        rows = await self._statements.read(
            f"SELECT {_COLUMNS} FROM prompts p WHERE owner = ? AND version = "  # noqa: S608 - constants
            "(SELECT max(version) FROM prompts q WHERE q.owner = p.owner AND q.name = p.name) ORDER BY name",
            owner,
        )
        return [_to_prompt(row) for row in rows]

    async def get_prompt(self, owner: str, name: str, version: int | None = None) -> Prompt:
        """A version of a prompt, the newest one for None. Raises `NotFoundError`."""
        versions = await self.list_versions(owner, name)
        stored = next((prompt for prompt in versions if version in (None, prompt.version)), None)
        if stored is None:
            version_numbers = ", ".join(str(prompt.version) for prompt in versions)
            raise NotFoundError(
                f"the prompt {name!r} has no version {version}; it has {version_numbers}", stage="version"
            )
        return stored

    async def list_versions(self, owner: str, name: str) -> list[Prompt]:
        """The versions of a prompt, newest first. Raises `NotFoundError`."""
        rows = await self._statements.read(
            f"SELECT {_COLUMNS} FROM prompts WHERE owner = ? AND name = ? ORDER BY version DESC",  # noqa: S608 - constants
            owner,
            to_storable_text(name)[:100],
        )
        if not rows:
            prompt_names = ", ".join(prompt.name for prompt in await self.list_prompts(owner)) or "none"
            raise NotFoundError(f"there is no prompt {name[:80]!r}; known prompts: {prompt_names}", stage="identifier")
        return [_to_prompt(row) for row in rows]

    async def save_prompt(
        self, owner: str, name: str, change: PromptChange, *, by: str, version: int | None = None
    ) -> Prompt:
        """Stores a new version; what equals the newest version is not stored again. `version` is the one that the
        caller has read: None accepts every one, 0 says that there is none.

        Raises `ValidationError`, and `VersionConflictError` if somebody else was faster.
        """
        newest, changed = await self._build_changed(owner, name, change, version)
        if changed == newest:
            return changed
        number = changed.version + 1
        more = changed.model_dump(mode="json", exclude=set(COLUMN_FIELDS))
        event = AuditEvent("prompt.save", name, owner=owner, by=by, detail={"version": number})
        async with self._audit.record_before(event):
            rows = await self._statements.write(
                f"INSERT INTO prompts (owner, {_COLUMNS}) VALUES (?,?,?,?,?,?,?,?) "  # noqa: S608 - constants
                "ON CONFLICT (owner, name, version) DO NOTHING RETURNING version",
                owner, name, number, changed.text, changed.description, by, self._clock(), json.dumps(more),
            )  # fmt: skip
            if not rows:
                raise VersionConflictError(f"the prompt {name!r}", None)
        await self._statements.write(
            "DELETE FROM prompts WHERE owner = ? AND name = ? AND version <= ?", owner, name, number - MAX_VERSIONS
        )
        return await self.get_prompt(owner, name, number)

    async def check_save(self, owner: str, name: str, change: PromptChange, *, version: int | None = None) -> None:
        """Raises what `save_prompt` would raise now. Changes nothing."""
        await self._build_changed(owner, name, change, version)

    async def remove_prompt(self, owner: str, name: str, *, by: str) -> int:
        """Removes a prompt with its versions and returns their number. Rooms that use its text keep it. Raises
        `NotFoundError`.
        """
        await self.list_versions(owner, name)
        async with self._audit.record_before(AuditEvent("prompt.remove", name, owner=owner, by=by)):
            rows = await self._statements.write(
                "DELETE FROM prompts WHERE owner = ? AND name = ? RETURNING version", owner, name
            )
        return len(rows)

    async def _build_changed(
        self, owner: str, name: str, change: PromptChange, version: int | None
    ) -> tuple[Prompt | None, Prompt]:
        """The newest version, if there is one, and the prompt as changed, with the number of the earlier version."""
        newest = await self._find_newest(owner, check_prompt_name(name))
        earlier = newest or Prompt(name=name)
        changed = earlier.model_copy(update=change.model_dump(exclude_none=True))
        if change.description is None and earlier.description and earlier.from_outside:
            changed = changed.model_copy(update={"from_outside": True})
        _check_texts(changed.text, changed.description)
        if version is not None and version != earlier.version:
            raise VersionConflictError(f"the prompt {name!r}", str(newest.version) if newest is not None else None)
        if newest is None and len(await self.list_prompts(owner)) >= MAX_PROMPTS:
            raise ValidationError(f"there are {MAX_PROMPTS} prompts already; remove one first", "check_config")
        return newest, changed

    async def _find_newest(self, owner: str, name: str) -> Prompt | None:
        rows: Sequence[Row] = await self._statements.read(
            f"SELECT {_COLUMNS} FROM prompts WHERE owner = ? AND name = ? ORDER BY version DESC LIMIT 1",  # noqa: S608 - constants
            owner,
            name,
        )
        return _to_prompt(rows[0]) if rows else None


def check_prompt_name(name: str) -> str:
    """The name. Raises `ValidationError` for one that cannot be used."""
    if not _NAME.fullmatch(name):
        raise ValidationError(
            f"{name[:80]!r} cannot be a prompt's name: use 1 to 64 of the characters a-z, 0-9, '-', '_' and '.', "
            "beginning with a letter or digit",
            "identifier",
        )
    return name


def _check_texts(text: str, description: str) -> None:
    problems = []
    if not text.strip():
        problems.append("text: it is empty")
    if len(text) > MAX_PROMPT_CHARS:
        problems.append(f"text: it has {len(text):,} characters; at most {MAX_PROMPT_CHARS:,} are allowed")
    if len(description) > MAX_DESCRIPTION_CHARS:
        problems.append(
            f"description: it has {len(description):,} characters; at most {MAX_DESCRIPTION_CHARS:,} are allowed"
        )
    if any(to_storable_text(value) != value for value in (text, description)):
        problems.append("a text holds half of a character (a lone surrogate) or a null character")
    if problems:
        raise ValidationError("; ".join(problems), "check_config", problems=problems)


def _to_prompt(row: Row) -> Prompt:
    name, version, text, description, by, at, more = row
    stored = {field: value for field, value in json.loads(more).items() if field in Prompt.model_fields}
    columns = {"name": name, "version": version, "text": text, "description": description, "by": by, "at": at}
    # What a run saved before there was this mark may be anybody's text.
    return Prompt.model_validate({"from_outside": "(run " in by} | stored | columns)
