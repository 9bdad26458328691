"""`/v1/admin/keys`: API keys, made, listed and revoked; `/v1/me`: what the caller may do, so that a page offers nothing
else.
"""

from datetime import UTC, datetime

from fastapi import APIRouter
from pydantic import AwareDatetime, Field

from agent.core.models import DeferredModel
from agent.storage.api_keys import SCOPES, ApiKey, KeyLimits, Scope
from gateway.auth.dependencies import CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute, StrictBody

router = APIRouter(tags=["keys"], route_class=JsonRoute)


class CallerItem(DeferredModel):
    """Who calls. Without a key the caller is on this machine and may do everything."""

    owner: str
    key: str | None = Field(description="id of the API key")
    scopes: list[Scope]
    requires_key: bool = Field(description="whether callers without a key are refused")


class KeyItem(DeferredModel):
    """A key, without its secret. Times are UTC; `tokens` and `cost_usd` are what it has used in all."""

    id: str
    owner: str
    name: str
    scopes: list[str]
    tools: list[str] | None = Field(description="tools that its runs may use; null: all")
    limits: KeyLimits
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    tokens: int = 0
    cost_usd: float = 0.0


class KeyItems(DeferredModel):
    """The keys, oldest first."""

    data: list[KeyItem]


class NewKey(StrictBody):
    """A key to make."""

    owner: str = Field(min_length=1, max_length=200)
    name: str = Field(min_length=1, max_length=200)
    scopes: list[Scope] = Field(min_length=1, max_length=len(SCOPES))
    tools: list[str] | None = Field(default=None, max_length=500)
    limits: KeyLimits = Field(default_factory=KeyLimits)
    expires_at: AwareDatetime | None = None


class MadeKey(KeyItem):
    """A key that was made. Its text is shown this once."""

    text: str


@router.get("/v1/me", responses=ERRORS)
async def get_caller_item(stepgate: Gateway, caller: CurrentCaller) -> CallerItem:
    """Return who calls, and with which scopes."""
    allowed = [scope for scope in SCOPES if caller.has_scope(scope)]
    key = None if caller.key is None or caller.is_external else caller.key.id
    return CallerItem(owner=caller.owner, key=key, scopes=allowed, requires_key=stepgate.authenticator.requires_key)


@router.get("/v1/admin/keys", responses=ERRORS, dependencies=[require_scope("admin")])
async def list_keys(stepgate: Gateway) -> KeyItems:
    """List all keys, revoked ones too."""
    return KeyItems(data=[await _to_item(stepgate, key) for key in await stepgate.keys.list_keys()])


@router.post("/v1/admin/keys", status_code=201, responses=ERRORS, dependencies=[require_scope("admin")])
async def create_key(body: NewKey, stepgate: Gateway, caller: CurrentCaller) -> MadeKey:
    """Make a key. Its text is in this answer only."""
    key, text = await stepgate.keys.create(
        body.owner,
        body.name,
        body.scopes,
        tools=body.tools,
        limits=body.limits,
        expires_at=body.expires_at.timestamp() if body.expires_at else None,
        by=caller.name,
    )
    return MadeKey(**(await _to_item(stepgate, key)).model_dump(), text=text)


@router.delete("/v1/admin/keys/{key_id}", responses=ERRORS, dependencies=[require_scope("admin")])
async def revoke_key(key_id: str, stepgate: Gateway, caller: CurrentCaller) -> KeyItem:
    """Revoke a key; it is refused from now on."""
    revoked = await stepgate.keys.revoke(key_id, by=caller.name)
    stepgate.authenticator.forget_key(key_id)
    return await _to_item(stepgate, revoked)


async def _to_item(stepgate: Stepgate, key: ApiKey) -> KeyItem:
    tokens, cost = await stepgate.keys.get_usage(key.id)

    def at(seconds: float | None) -> datetime | None:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)

    return KeyItem(
        id=key.id,
        owner=key.owner,
        name=key.name,
        scopes=sorted(key.scopes),
        tools=None if key.tools is None else list(key.tools),
        limits=key.limits,
        created_at=datetime.fromtimestamp(key.created_at, UTC),
        expires_at=at(key.expires_at),
        revoked_at=at(key.revoked_at),
        last_used_at=at(key.last_used_at),
        tokens=tokens,
        cost_usd=cost,
    )
