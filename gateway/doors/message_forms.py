"""The forms of chats: conversations in a list, messages as they are shown, and as they are sent."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from agent.core.models import DeferredModel, JsonObject, RunStatus
from gateway.doors.strict_body import StrictBody


class ConversationMatch(DeferredModel):
    """The message that a search has found in a conversation, with its text around the words."""

    message: str
    excerpt: str


class ConversationEntry(DeferredModel):
    """A conversation in a list. `status` is that of its newest run; `open_runs` counts those that have not ended."""

    id: str
    title: str
    room: str
    status: RunStatus
    open_runs: int
    created_at: datetime
    updated_at: datetime
    match: ConversationMatch | None = Field(default=None, description="of a search: the message that has the words")


class ConversationEntries(DeferredModel):
    """Conversations, newest first. Pass `next` as `before` for older ones."""

    data: list[ConversationEntry]
    next: str | None = None


class Message(DeferredModel):
    """A message. `parent` is the one it follows, null at the beginning. `siblings` are the messages that follow the
    same one, in the order they were sent: the versions of a question, or of an answer.
    """

    id: str
    role: Literal["user", "assistant"]
    parent: str | None
    run_id: str
    content: str
    images: list[str] = Field(default_factory=list)
    created_at: datetime
    siblings: list[str]
    status: RunStatus | None = Field(default=None, description="of an answer: that of its run")
    view: JsonObject | None = Field(default=None, description="of an answer: its HTML (`render=html`), steps, metadata")


class MessageList(DeferredModel):
    """The messages of a branch, oldest first. Pass `previous` as `before` for earlier ones."""

    data: list[Message]
    head: str | None
    room: str
    model: str | None = Field(default=None, description="the model chosen with the last message; null: the room's own")
    title: str
    collection: str | None = Field(
        default=None, description="`collection` of the conversation's metadata: where its messages are answered from"
    )
    previous: str | None = None


class NewMessage(StrictBody):
    """A message to send. To answer a question again, name it as `parent` and leave `content` out."""

    content: str | None = Field(default=None, description="the message; left out: that of `parent`, answered again")
    parent: str | None = Field(
        default=None,
        max_length=250,
        description="the message to follow: an answer, `root` to start over, or a user's message to answer it "
        "again; left out: the conversation's head",
    )
    room: str | None = Field(default=None, description="a room, or `room@model`; left out: the default room")
    images: list[str] = Field(default_factory=list, max_length=20, description="data: or https: addresses of pictures")
    approvals: list[str] | None = Field(
        default=None,
        max_length=1_000,
        description="ids of the approvals that the client displays: it is a reply to these only, and a 409 if others "
        "are open; left out: to what is open",
    )
    withdraw: bool = Field(
        default=False,
        description="stop what waits for a person in the branch that `parent` leaves: two versions of a question, both "
        "approved, would do the same twice",
    )
    metadata: JsonObject = Field(default_factory=dict)


class SentMessage(DeferredModel):
    """A message that was sent: follow `events`, or read the answer at its id."""

    run_id: str
    user_message: str
    answer: str
    parent: str | None = Field(
        description="the answer that it follows, null at the beginning; not the last one that a client has shown if "
        "another client was faster"
    )
    status: RunStatus


class NewHead(StrictBody):
    """The message that the next one follows. A message in the middle chooses the newest branch through it, unless
    `exact`.
    """

    message: str = Field(max_length=250)
    exact: bool = False
