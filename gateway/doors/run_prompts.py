"""`GET /v1/runs/{id}/prompts`: what went to models in a run, and their raw replies, where they are kept."""

import json
from datetime import UTC, datetime

from fastapi import APIRouter
from pydantic import Field, JsonValue

from agent.core.models import DeferredModel
from agent.storage.prompt_log import KeptPrompt
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.doors.agent import ERRORS
from gateway.doors.deferred_route import DeferredRoute
from gateway.doors.dependencies import Gateway
from gateway.doors.visible_runs import get_visible_run

router = APIRouter(tags=["runs"], route_class=DeferredRoute, dependencies=[require_scope("agent")])


class PromptItem(DeferredModel):
    """A call of a model."""

    step_id: str | None
    purpose: str
    model: str
    messages: JsonValue = Field(description="as they were sent, after redaction; cut ones as text")
    reply: str
    at: datetime


class PromptItems(DeferredModel):
    """The calls that are kept, in order. `days` is AGENT_KEEP_PROMPTS; 0: none are kept."""

    days: float
    data: list[PromptItem]


@router.get("/v1/runs/{run_id}/prompts", responses=ERRORS)
async def list_prompts(run_id: str, stepgate: Gateway, caller: CurrentCaller) -> PromptItems:
    """List the prompts and replies of a run. Only its owner reads them, and a key with the scope `admin`."""
    await get_visible_run(stepgate, caller, run_id, "prompts")
    days = stepgate.settings.keep_prompts
    stored_prompts = await stepgate.prompts.list_prompts(run_id) if days else []
    return PromptItems(days=days, data=[_to_item(one) for one in stored_prompts])


def _to_item(kept: KeptPrompt) -> PromptItem:
    try:
        messages: JsonValue = json.loads(kept.messages)
    except ValueError:  # it was cut
        messages = kept.messages
    return PromptItem(
        step_id=kept.step_id,
        purpose=kept.purpose,
        model=kept.model,
        messages=messages,
        reply=kept.reply,
        at=datetime.fromtimestamp(kept.at, UTC),
    )
