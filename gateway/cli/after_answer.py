"""Calls the features' hooks of a command that has printed the answer of a run."""

import asyncio
from typing import TYPE_CHECKING

from agent.core.models import LOCAL_OWNER
from gateway.feature_loader import import_target, list_hooks

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate


async def finish_after_answer(
    stepgate: "Stepgate", conversation_id: str, stopped: asyncio.Event | None = None, *, owner: str = LOCAL_OWNER
) -> bool:
    """Waits for what a run has started, such as the ingestion of its conversation. Returns whether all went well.

    `conversation_id` may also be the id of the conversation's run. `stopped` ends the waiting.
    """
    results = [
        await import_target(target)(stepgate, conversation_id, stopped, owner=owner)
        for _, target in list_hooks(stepgate.host.context.features, lambda feature: feature.after_answer)
    ]
    return all(results)
