"""`/v1/webhooks/deliveries`: what was posted about ended runs, and what the receivers answered."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field

from agent.core.models import DeferredModel
from agent.core.record_item import RecordItem
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute
from gateway.features.schedules.engine.webhook_outbox import DeliveryState, WebhookDelivery
from gateway.features.schedules.parts import get_webhooks

router = APIRouter(tags=["webhooks"], route_class=JsonRoute, dependencies=[require_scope("agent")])


class DeliveryItem(RecordItem):
    """One delivery. `id` is the `webhook-id` of each attempt."""

    id: str
    run_id: str
    url: str
    secret_name: str | None
    state: DeliveryState = Field(description="`open` until the receiver has accepted it or it was given up")
    attempts: int
    next_attempt_at: datetime | None = Field(
        validation_alias="next_attempt", description="not before the end of the run; null if nothing more is sent"
    )
    last_status: int | None = Field(description="HTTP status of the last answer")
    last_error: Annotated[str | None, BeforeValidator(lambda text: text or None)]
    created_at: datetime = Field(validation_alias="created")
    updated_at: datetime = Field(validation_alias="updated")


class DeliveryList(DeferredModel):
    """Deliveries, newest first; pass `next` as `before` for older ones."""

    data: list[DeliveryItem]
    next: str | None = None


@router.get("/v1/webhooks/deliveries", responses=ERRORS)
async def list_deliveries(
    stepgate: Gateway,
    caller: CurrentCaller,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[str | None, Query(max_length=200)] = None,
    run_id: Annotated[str | None, Query(max_length=200)] = None,
) -> DeliveryList:
    """List the deliveries of webhooks, of all runs or of one."""
    outbox = get_webhooks(stepgate).outbox
    newest = await outbox.list_newest(caller.owner, limit=limit, run_id=run_id, before=before)
    return DeliveryList(
        data=[to_delivery_item(one) for one in newest], next=newest[-1].id if len(newest) == limit else None
    )


@router.post("/v1/webhooks/deliveries/{delivery_id}/retry", status_code=202, responses=ERRORS)
async def retry_delivery(delivery_id: str, stepgate: Gateway, caller: CurrentCaller) -> DeliveryItem:
    """Send a delivery again now, also one that was given up or accepted, under the same `webhook-id`."""
    delivery = await get_webhooks(stepgate).outbox.retry(delivery_id, caller.owner)
    get_webhooks(stepgate).wake()
    return to_delivery_item(delivery)


def to_delivery_item(delivery: WebhookDelivery) -> DeliveryItem:
    """A delivery as it is sent."""
    item = DeliveryItem.model_validate(delivery)
    return item if delivery.state == "open" else item.model_copy(update={"next_attempt_at": None})
