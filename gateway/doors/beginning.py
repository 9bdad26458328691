"""A request of a door as a run: a new one, one that waits for this answer, or a message about a pipeline.

The doors of chats and sessions use it, `/v1/chat/completions` and `/v1/agent`, and `stepgate ask`."""

from agent.core.models import AgentRequest
from gateway.bootstrap import Stepgate
from gateway.doors.replies import answered
from gateway.gatekeeper import Caller

CHAT_ID_CHARS = 200


async def begun(
    stepgate: Stepgate, caller: Caller, request: AgentRequest, *, run_id: str | None = None
) -> tuple[str, int]:
    """The run that answers a request, and the seq it had come to before. `run_id` is for a new run; that of a builder's
    conversation has an id of its own.

    In the room that builds pipelines, `conversation_id` names the builder's conversation that the run belongs to, made
    with its first use. Raises what `answered`, `start_run` and `BuilderConversations.join` raise."""
    conversations = stepgate.conversations
    if request.conversation_id is None or not conversations.takes(stepgate.service.admit(request)):
        return await answered(stepgate, caller, request) or (
            await start_run(stepgate, caller, request, run_id=run_id),
            0,
        )
    conversation = await conversations.of_chat(request.conversation_id, owner=caller.owner)
    request = request.model_copy(update={"conversation_id": conversation.id})
    reply = await answered(stepgate, caller, request)
    if reply is not None:
        return reply
    sent = await conversations.join(conversation, request, principal=caller.principal)
    return sent.run_id, sent.heard


async def begun_in_chat(
    stepgate: Stepgate, caller: Caller, request: AgentRequest, *, hidden: bool, run_id: str | None = None
) -> tuple[str, int]:
    """The same for a chat, whose id (`metadata.chat_id`), where it is known, is its conversation's. A client's
    background prompts (`hidden`) belong to no conversation."""
    if hidden:
        return await start_run(stepgate, caller, request, hidden=True, run_id=run_id), 0
    chat = request.metadata.get("chat_id")
    if not isinstance(chat, str) or not chat:
        return await begun(stepgate, caller, request, run_id=run_id)
    tied = request.model_copy(update={"conversation_id": chat[:CHAT_ID_CHARS]})
    if stepgate.conversations.takes(stepgate.service.admit(request)):
        return await begun(stepgate, caller, tied, run_id=run_id)
    # The chat's own messages say what is answered: one that is sent anew is no reply to what came after it.
    return await answered(stepgate, caller, request) or (await start_run(stepgate, caller, tied, run_id=run_id), 0)


async def start_run(
    stepgate: Stepgate, caller: Caller, request: AgentRequest, *, hidden: bool = False, run_id: str | None = None
) -> str:
    """Begin a run for a caller, with the tools of their key. Raises what `AgentService.start` does, and
    `RateLimitError` when as many of their runs are under way as their key allows."""
    return await stepgate.service.of(caller.principal).start(request, hidden=hidden, run_id=run_id)
