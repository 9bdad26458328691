"""Pipeline conversations, schedules and webhooks."""

from pydantic import BaseModel, Field


class ConversationsSettings(BaseModel):
    """Pipeline conversations, schedules and webhooks."""

    conversations_require_llm: bool = Field(
        default=True, description="refuse pipeline conversations without a model; false: rules lead them"
    )
    conversation_message_seconds: float = Field(
        default=86_400, gt=0, description="how long conversation messages are stored after the last one, in seconds"
    )
    conversation_archive_days: float = Field(
        default=30, gt=0, description="days after which applied and abandoned conversations are archived"
    )
    conversation_messages_per_minute: int = Field(
        default=30, ge=1, description="messages that one user may send to conversations in a minute"
    )
    schedules_per_owner: int = Field(default=100, ge=0, description="most schedules of one owner; 0 allows no new ones")
    webhook_timeout_s: float = Field(
        default=20, gt=0, le=300, description="time limit of one attempt to deliver a webhook, in seconds"
    )
