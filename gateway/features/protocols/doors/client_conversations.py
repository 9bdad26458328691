"""`/v1/conversations`: OpenAI's Conversations API, for clients that keep their history at the endpoint.

A conversation is the one that `POST /v1/responses` names: its items are the messages of its runs, and what the client
adds.
"""

import contextlib
import json
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from agent.core.errors import ConflictError
from agent.core.models import JsonObject
from agent.policy.redaction.secrets import make_secret_finder
from agent.runs.client_conversations import ClientConversation
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.dependencies import Gateway
from gateway.doors.item_pages import ItemPage, format_page
from gateway.doors.json_body import OpenAIRoute
from gateway.doors.openai import OPENAI_ERRORS
from gateway.features.documents.parts import get_documents
from gateway.features.protocols.doors.response_input import convert_input, list_input_items
from gateway.features.protocols.engine.conversation_files import find_unshared_collection
from gateway.render.errors import RequestFormatError

router = APIRouter(
    prefix="/v1/conversations", tags=["OpenAI"], route_class=OpenAIRoute, dependencies=[require_scope("chat")]
)

MAX_NEW_ITEMS = 20
MetadataText = Annotated[str, Field(max_length=512)]
Metadata = Annotated[dict[Annotated[str, Field(max_length=64)], MetadataText], Field(max_length=16)]


class NewConversation(BaseModel):
    """A conversation to create."""

    metadata: Metadata | None = None
    items: list[JsonObject] | None = Field(default=None, max_length=MAX_NEW_ITEMS)


class ConversationChange(BaseModel):
    """New metadata, which replaces the old."""

    metadata: Metadata | None


class NewItems(BaseModel):
    """Items to add, in the form of the Responses API's input."""

    items: list[JsonObject] = Field(max_length=MAX_NEW_ITEMS)


@router.post("", responses=OPENAI_ERRORS)
async def create_conversation(body: NewConversation, stepgate: Gateway, caller: CurrentCaller) -> dict[str, Any]:
    """Create a conversation, with its first items."""
    items = _read_items(stepgate, body.items or [])
    return _to_wire(await stepgate.client_conversations.create(caller.owner, body.metadata or {}, items))


@router.get("/{conversation_id}", responses=OPENAI_ERRORS)
async def get_conversation(conversation_id: str, stepgate: Gateway, caller: CurrentCaller) -> dict[str, Any]:
    """Return a conversation."""
    return _to_wire(await stepgate.client_conversations.get(caller.owner, conversation_id))


@router.post("/{conversation_id}", responses=OPENAI_ERRORS)
async def update_conversation(
    conversation_id: str, body: ConversationChange, stepgate: Gateway, caller: CurrentCaller
) -> dict[str, Any]:
    """Replace the metadata of a conversation."""
    changed = await stepgate.client_conversations.set_metadata(caller.owner, conversation_id, body.metadata or {})
    return _to_wire(changed)


@router.delete("/{conversation_id}", responses=OPENAI_ERRORS)
async def delete_conversation(conversation_id: str, stepgate: Gateway, caller: CurrentCaller) -> dict[str, Any]:
    """Delete a conversation with its items and what is remembered of it, and cancel what is in progress in it. Its
    responses stay and can be read by their ids. A key that may delete documents (`ingest`) deletes the files of the
    conversation too: the collection `chat-` with the first 20 digits of its id, unless another conversation or a room
    names it; one into which a file is being read goes after that.
    """
    try:
        for run_id in await stepgate.client_conversations.delete(caller.owner, conversation_id):
            with contextlib.suppress(ConflictError):  # it has ended meanwhile
                await stepgate.service.cancel_run(run_id, owner=caller.owner, reason="its conversation was deleted")
    finally:  # a deletion that broke off is completed by a repetition, which finds no conversation
        await stepgate.memory.delete_all(caller.owner, conversation_id=conversation_id)
    if caller.has_scope("ingest") and "documents" in stepgate.host.context.features:
        collection = await find_unshared_collection(
            caller.owner,
            conversation_id,
            own_ids=stepgate.intake.own_ids,
            conversations=stepgate.client_conversations,
            rooms=stepgate.rooms,
        )
        if collection is not None:
            await get_documents(stepgate).drops.drop(caller.owner, collection, by=caller.name)
    return {"id": conversation_id, "object": "conversation.deleted", "deleted": True}


@router.post("/{conversation_id}/items", responses=OPENAI_ERRORS)
async def add_items(conversation_id: str, body: NewItems, stepgate: Gateway, caller: CurrentCaller) -> dict[str, Any]:
    """Add items. Messages are found by the next run of the conversation; other items are kept for the client."""
    items = _read_items(stepgate, body.items)
    added = await stepgate.client_conversations.add_items(caller.owner, conversation_id, items)
    return format_page(added, has_more=False)


@router.get("/{conversation_id}/items", responses=OPENAI_ERRORS)
async def list_items(conversation_id: str, stepgate: Gateway, caller: CurrentCaller, page: ItemPage) -> dict[str, Any]:
    """List the items, newest first unless `order` is `asc`."""
    items, has_more = await stepgate.client_conversations.list_items(
        caller.owner, conversation_id, limit=page.limit, newest_first=page.order == "desc", after=page.after
    )
    return format_page(items, has_more=has_more)


@router.get("/{conversation_id}/items/{item_id}", responses=OPENAI_ERRORS)
async def get_item(conversation_id: str, item_id: str, stepgate: Gateway, caller: CurrentCaller) -> JsonObject:
    """Return an item."""
    return await stepgate.client_conversations.get_item(caller.owner, conversation_id, item_id)


@router.delete("/{conversation_id}/items/{item_id}", responses=OPENAI_ERRORS)
async def delete_item(conversation_id: str, item_id: str, stepgate: Gateway, caller: CurrentCaller) -> dict[str, Any]:
    """Delete an item and what is remembered of its exchange; the next run finds neither. Returns the conversation."""
    run_id = await stepgate.client_conversations.delete_item(caller.owner, conversation_id, item_id)
    await stepgate.memory.delete_all(caller.owner, conversation_id=conversation_id, run_id=run_id)
    return _to_wire(await stepgate.client_conversations.get(caller.owner, conversation_id))


def _read_items(stepgate: Stepgate, items: list[JsonObject]) -> list[JsonObject]:
    """The items as they are kept, without secrets of the gateway. Raises `RequestFormatError`."""
    for number, message in enumerate(convert_input(items, "items")):
        if isinstance(message.content, list) and any(part.image_url is not None for part in message.content):
            # The history of runs is text: a picture would be lost in silence.
            problem = (
                "a message of a conversation has text alone; send its pictures in the `input` of a request "
                f"(message {number + 1} of the items)"
            )
            raise RequestFormatError(problem, "items", "unsupported_parameter")
    text = json.dumps(list_input_items(list(items), "new"))
    stored_items: list[JsonObject] = json.loads(
        make_secret_finder(stepgate.settings.list_secrets(), "known").redact(text)
    )
    return stored_items


def _to_wire(conversation: ClientConversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "object": "conversation",
        "created_at": int(conversation.created),
        "metadata": conversation.metadata,
    }
