"""Pipeline conversations, schedules and webhooks."""

from pydantic import BaseModel, Field


class ConversationsSettings(BaseModel):
    """Pipeline conversations, schedules and webhooks."""

    conversations_require_llm: bool = Field(
        default=True, description="refuse pipeline conversations without a model; false: rules lead them"
    )
