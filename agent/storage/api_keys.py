"""API keys: who may call, for what, until when and how much.

A key is `sg_<id>_<secret>`. The secret has 256 random bits and cannot be guessed, so a plain SHA-256 of it is stored
instead of a slow hash. It is shown once, compared in constant time, and never logged; the id may be logged.
"""

import hashlib
import hmac
import json
import secrets
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, TypedDict, Unpack, get_args

from pydantic import Field

from agent.core.errors import AuthError, BadRequestError, ConflictError, NotFoundError
from agent.core.models import FrozenModel, JsonObject
from agent.storage.audit import INSERT_SQL, NO_AUDIT, AuditEvent, AuditLog
from agent.storage.sql import Row, SqlClient, SqlStatement, UnchangedError

Scope = Literal["chat", "agent", "approve", "ingest", "mcp", "metrics", "rooms", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
_ALPHABET = string.digits + string.ascii_letters
_ID_LENGTH = 8
_SECRET_LENGTH = 43
"""Number of base-62 characters that hold 256 bits."""
_COLUMNS = "id, owner, name, scopes, tools, limits, created_at, expires_at, revoked_at, last_used_at"
COLUMN_FIELDS: Final = frozenset(_COLUMNS.split(", "))
"""Fields of a key that have a column. The others hold JSON and are stored with the limits."""
MAX_TRIES: Final = 5
"""How often a change of limits is tried while others change the same key."""


class KeyLimits(FrozenModel):
    """The limits of a key. None means no limit. Minutes are sliding windows; budgets hold for the key's whole life."""

    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    parallel_runs: int | None = Field(default=None, ge=1)
    budget_tokens: int | None = Field(default=None, ge=1)
    budget_usd: float | None = Field(default=None, gt=0)


class KeyOptions(TypedDict, total=False):
    """The options of a new key."""

    tools: Sequence[str] | None
    limits: KeyLimits | None
    expires_at: float | None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as lists show it, without the secret. `tools` restricts what its runs may call; None allows all tools."""

    id: str
    owner: str
    name: str
    scopes: frozenset[str]
    tools: tuple[str, ...] | None
    limits: KeyLimits
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None
    last_used_at: float | None = None

    def has_scope(self, scope: Scope) -> bool:
        """Whether the key allows this. `admin` allows everything."""
        return scope in self.scopes or "admin" in self.scopes


class KeyStore:
    """The API keys. Every method raises `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float], audit: AuditLog = NO_AUDIT) -> None:
        self._statements = statements
        self._clock = clock
        self._audit = audit

    async def create(
        self,
        owner: str,
        name: str,
        scopes: Sequence[str],
        *,
        by: str | None = None,
        **options: Unpack[KeyOptions],
    ) -> tuple[ApiKey, str]:
        """Creates a key and returns it with its text, which cannot be shown again. `by` is who creates it, for the
        audit record. Raises `BadRequestError` for unknown scopes, and for an end in the past.
        """
        unknown = sorted(set(scopes) - set(SCOPES))
        if unknown or not scopes:
            what = f"there is no scope {unknown[0]!r}" if unknown else "a key needs a scope"
            raise BadRequestError(f"{what}; the scopes are {', '.join(SCOPES)}", param="scopes")
        if not owner.strip() or not name.strip():
            raise BadRequestError("a key needs an owner and a name", param="owner" if name.strip() else "name")
        expires_at = options.get("expires_at")
        if expires_at is not None and expires_at <= self._clock():
            raise BadRequestError("expires_at: this time is in the past; choose a later one", param="expires_at")
        key_id, secret = _generate_text(_ID_LENGTH), _generate_text(_SECRET_LENGTH)
        tools, limits = options.get("tools"), options.get("limits")
        chosen: dict[str, Any] = {
            **options,
            "tools": None if tools is None else tuple(tools),
            "limits": limits or KeyLimits(),
        }
        key = ApiKey(
            id=key_id,
            owner=owner.strip(),
            name=name.strip(),
            scopes=frozenset(scopes),
            created_at=self._clock(),
            **chosen,
        )
        more = {name: getattr(key, name) for name in _list_further_fields()}
        about: JsonObject = {
            "name": key.name,
            "scopes": [*sorted(key.scopes)],
            "tools": None if key.tools is None else [*key.tools],
            "limits": key.limits.model_dump(exclude_none=True),
            "expires_at": key.expires_at,
            **more,
        }
        async with self._audit.record_before(AuditEvent("key.create", key.id, owner=key.owner, by=by, detail=about)):
            await self._statements.write(
                f"INSERT INTO api_keys (secret_hash, {_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?)",  # noqa: S608
                _hash_secret(secret),
                key.id,
                key.owner,
                key.name,
                json.dumps(sorted(key.scopes)),
                json.dumps(key.tools),
                json.dumps(key.limits.model_dump(mode="json") | more),
                key.created_at,
                key.expires_at,
                None,
                None,
            )
        return key, f"sg_{key_id}_{secret}"

    async def verify(self, text: str) -> ApiKey:
        """The key with this text. Raises `AuthError` if it is unknown, expired or revoked; the message is the
        same for an unknown id and a wrong secret.
        """
        key_id, secret = parse_key(text)
        rows = await self._statements.read(
            f"SELECT secret_hash, {_COLUMNS} FROM api_keys WHERE id = ?",  # noqa: S608 - constants
            key_id,
        )
        stored = str(rows[0][0]) if rows else _hash_secret("")
        # Compares also for an unknown id, so that the response time does not reveal which ids exist.
        if not hmac.compare_digest(stored, _hash_secret(secret)) or not rows:
            raise AuthError("this API key is unknown")
        return self._check_valid(_parse_row(rows[0][1:]))

    async def get_valid(self, key_id: str) -> ApiKey:
        """The key of this id, for work that its holder has left behind. Raises `AuthError` if it was deleted or
        revoked, or has expired.
        """
        try:
            return self._check_valid(await self.get(key_id))
        except NotFoundError as error:
            raise AuthError(f"the API key {key_id} was deleted") from error

    def _check_valid(self, key: ApiKey) -> ApiKey:
        if key.revoked_at is not None:
            raise AuthError(f"the API key {key.id} was revoked")
        if key.expires_at is not None and key.expires_at <= self._clock():
            raise AuthError(f"the API key {key.id} has expired")
        return key

    async def get(self, key_id: str) -> ApiKey:
        """The key of this id. Raises `NotFoundError`."""
        return _parse_row(await self._read_row(key_id))

    async def _read_row(self, key_id: str) -> Row:
        rows = await self._statements.read(f"SELECT {_COLUMNS} FROM api_keys WHERE id = ?", key_id)  # noqa: S608
        if not rows:
            raise NotFoundError(f"there is no API key with the id {key_id!r}; `stepgate keys list` shows the ids")
        return rows[0]

    async def list_keys(self, owner: str | None = None) -> Sequence[ApiKey]:
        """The keys of one owner or of all, oldest first."""
        rows = await self._statements.read(
            f"SELECT {_COLUMNS} FROM api_keys WHERE (? = '' OR owner = ?) ORDER BY created_at, id",  # noqa: S608
            owner or "",
            owner or "",
        )
        return [_parse_row(row) for row in rows]

    async def revoke(self, key_id: str, *, by: str | None = None) -> ApiKey:
        """Revokes a key; `by` is recorded. Revoking it again changes nothing. Raises `NotFoundError`."""
        key = await self.get(key_id)
        if key.revoked_at is not None:
            return key
        async with self._audit.record_before(
            AuditEvent("key.revoke", key.id, owner=key.owner, by=by, detail={"name": key.name})
        ):
            rows = await self._statements.write(
                f"UPDATE api_keys SET revoked_at = COALESCE(revoked_at, ?) WHERE id = ? RETURNING {_COLUMNS}",  # noqa: S608
                self._clock(),
                key_id,
            )
        return _parse_row(rows[0])

    async def change_limits(self, key_id: str, changes: Mapping[str, float | None], *, by: str | None = None) -> ApiKey:
        """Changes the limits that are named; None removes one. Calls are refused by the new ones within seconds, also
        those of runs in progress. `by` is recorded with the limits before and after.

        Raises `NotFoundError`, `ConflictError` for a revoked key, and Pydantic's `ValidationError` for a value that no
        limit can have.
        """
        for _ in range(MAX_TRIES):
            row = await self._read_row(key_id)
            key, stored = _parse_row(row), str(row[_COLUMNS.split(", ").index("limits")])
            if key.revoked_at is not None:
                raise ConflictError(f"the API key {key_id} was revoked; make a new one with these limits")
            limits = KeyLimits.model_validate(key.limits.model_dump() | dict(changes))
            if limits == key.limits:
                return key
            before, after = (one.model_dump(exclude_none=True) for one in (key.limits, limits))
            detail: JsonObject = {"name": key.name, "limits": after, "before": before}
            record = self._audit.to_row(AuditEvent("key.change", key.id, owner=key.owner, by=by, detail=detail))
            update = SqlStatement(
                "UPDATE api_keys SET limits = ? WHERE id = ? AND limits = ? AND revoked_at IS NULL",
                (json.dumps(json.loads(stored) | limits.model_dump(mode="json")), key_id, stored),
                must_change=True,
            )
            try:
                await self._statements.write_all(
                    *([] if record is None else [SqlStatement(INSERT_SQL, record)]), update
                )
            except UnchangedError:  # somebody else has changed or revoked it meanwhile
                continue
            return replace(key, limits=limits)
        raise ConflictError(f"the limits of the API key {key_id} are being changed by another request; try again")

    async def record_use(self, key_id: str) -> None:
        """Stores the current time as the key's last use."""
        await self._statements.write("UPDATE api_keys SET last_used_at = ? WHERE id = ?", self._clock(), key_id)

    async def has_valid_key(self) -> bool:
        """Whether any key is valid."""
        rows = await self._statements.read(
            "SELECT 1 FROM api_keys WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?) LIMIT 1",
            self._clock(),
        )
        return bool(rows)

    async def count_valid(self, owner: str) -> tuple[int, int]:
        """Counts the valid keys of an owner, and those of other owners."""
        rows = await self._statements.read(
            "SELECT COALESCE(SUM(CASE WHEN owner = ? THEN 1 ELSE 0 END), 0), COUNT(*) FROM api_keys "
            "WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)",
            owner,
            self._clock(),
        )
        own, every = int(rows[0][0]), int(rows[0][1])
        return own, every - own

    async def get_usage(self, key_id: str) -> tuple[int, float]:
        """The tokens and USD that a key has used. Raises `NotFoundError`."""
        rows = await self._statements.read("SELECT used_tokens, used_usd FROM api_keys WHERE id = ?", key_id)
        if not rows:
            raise NotFoundError(f"there is no API key {key_id!r}; `stepgate keys list` shows the ids")
        return int(rows[0][0]), float(rows[0][1])


def parse_key(text: str) -> tuple[str, str]:
    """Splits a key's text into id and secret. Raises `AuthError` if it does not have the form of a key."""
    parts = text.strip().split("_")
    if len(parts) != 3 or parts[0] != "sg" or not parts[1] or not parts[2]:
        raise AuthError("this is not an API key of Stepgate, which has the form `sg_ID_SECRET`")
    return parts[1], parts[2]


def _generate_text(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def _hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _parse_row(row: tuple[Any, ...]) -> ApiKey:
    key_id, owner, name, scopes, tools, limits, created, expires, revoked, used = row
    narrowed, stored = json.loads(tools), json.loads(limits)
    return ApiKey(
        id=str(key_id),
        owner=str(owner),
        name=str(name),
        scopes=frozenset(json.loads(scopes)),
        tools=tuple(narrowed) if narrowed is not None else None,
        limits=KeyLimits.model_validate({name: stored[name] for name in KeyLimits.model_fields if name in stored}),
        created_at=float(created),
        expires_at=None if expires is None else float(expires),
        revoked_at=None if revoked is None else float(revoked),
        last_used_at=None if used is None else float(used),
        **{name: stored[name] for name in _list_further_fields() if name in stored},
    )


def _list_further_fields() -> list[str]:
    return [field.name for field in fields(ApiKey) if field.name not in COLUMN_FIELDS]
