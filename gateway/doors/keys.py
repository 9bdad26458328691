"""`/v1/admin/keys`: API keys, made, listed, changed and revoked; `/v1/me`: what the caller may do, so that a page
offers nothing else.
"""

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from agent.core.errors import BadRequestError
from agent.core.models import DeferredModel
from agent.storage.api_keys import SCOPES, ApiKey, Scope
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute
from gateway.doors.key_forms import KeyChange, KeyItem, KeyItems, MadeKey, NewKey, to_item

router = APIRouter(tags=["keys"], route_class=JsonRoute)


class CallerItem(DeferredModel):
    """Who calls. Without a key the caller is on this machine and may do everything."""

    owner: str
    key: str | None = Field(description="id of the API key")
    scopes: list[Scope]
    requires_key: bool = Field(description="whether callers without a key are refused")
    model: str | None = Field(description="the fast model, or several in their order; null: rules mode")


@router.get("/v1/me", responses=ERRORS)
async def get_caller_item(stepgate: Gateway, caller: CurrentCaller) -> CallerItem:
    """Return who calls, and with which scopes."""
    allowed = [scope for scope in SCOPES if caller.has_scope(scope)]
    key = None if caller.key is None or caller.is_external else caller.key.id
    return CallerItem(
        owner=caller.owner,
        key=key,
        scopes=allowed,
        requires_key=stepgate.authenticator.requires_key,
        model=stepgate.models.fast if stepgate.models.is_configured else None,
    )


@router.get("/v1/admin/keys", responses=ERRORS, dependencies=[require_scope("admin")])
async def list_keys(stepgate: Gateway) -> KeyItems:
    """List all keys, revoked ones too."""
    return KeyItems(data=[await _to_item(stepgate, key) for key in await stepgate.keys.list_keys()])


@router.post("/v1/admin/keys", status_code=201, responses=ERRORS, dependencies=[require_scope("admin")])
async def create_key(body: NewKey, response: Response, stepgate: Gateway, caller: CurrentCaller) -> MadeKey:
    """Make a key. Its text is in this answer only: repeated with its `Idempotency-Key`, the request is a 409 that names
    the key.
    """
    key, text = await stepgate.keys.create(body.owner, body.name, body.scopes, by=caller.name, **body.to_options())
    response.headers["cache-control"] = "no-store"
    response.headers["location"] = f"/v1/admin/keys/{key.id}"
    return MadeKey(**(await _to_item(stepgate, key)).model_dump(), text=text)


@router.patch("/v1/admin/keys/{key_id}", responses=ERRORS, dependencies=[require_scope("admin")])
async def change_key(key_id: str, body: KeyChange, stepgate: Gateway, caller: CurrentCaller) -> KeyItem:
    """Change the limits of a key that are named; null removes one. They hold within seconds, for runs in progress too;
    what the key has used so far counts towards a new budget.
    """
    changes = body.to_changes()
    if not changes:
        raise BadRequestError("limits: name one to change; null removes it", param="limits")
    changed = await stepgate.keys.change_limits(key_id, changes, by=caller.name)
    stepgate.authenticator.forget_key(key_id)
    return await _to_item(stepgate, changed)


@router.delete("/v1/admin/keys/{key_id}", responses=ERRORS, dependencies=[require_scope("admin")])
async def revoke_key(key_id: str, stepgate: Gateway, caller: CurrentCaller) -> KeyItem:
    """Revoke a key; it is refused from now on."""
    revoked = await stepgate.keys.revoke(key_id, by=caller.name)
    stepgate.authenticator.forget_key(key_id)
    return await _to_item(stepgate, revoked)


async def _to_item(stepgate: Stepgate, key: ApiKey) -> KeyItem:
    return to_item(key, await stepgate.keys.get_usage(key.id))
