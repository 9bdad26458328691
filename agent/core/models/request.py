"""What is asked: a conversation so far, a prompt, and what the caller wants of its tools and models."""

from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from agent.core.models.words import Frozen, JsonObject, Role

RESERVED_METADATA = frozenset(
    {
        "plan", "tool_results", "runtime", "usage", "run_id", "room", "status", "gates", "uncertainties", "failure",
        "approvals", "aborted", "reason", "sources", "citations", "tailor", "verification",
    }
)  # fmt: skip
"""Keys the engine writes into the response's metadata; a caller's values under them are dropped."""
NAME_CHARS = 200
"""Characters of a conversation's name."""


class ChatMessage(Frozen):
    """One message of a conversation, in text. Images are kept apart as data or http URLs."""

    role: Role
    content: str = ""
    images: tuple[str, ...] = ()
    tool_calls: tuple[JsonObject, ...] = Field(default=(), description="calls of a client's own tools, as received")
    tool_call_id: str | None = None

    def wire(self) -> JsonObject:
        """In OpenAI's wire form."""
        message: JsonObject = {"role": self.role, "content": self.content}
        if self.images:
            parts: list[JsonValue] = [{"type": "text", "text": self.content}]
            parts += [{"type": "image_url", "image_url": {"url": url}} for url in self.images]
            message["content"] = parts
        if self.tool_calls:
            message["tool_calls"] = list(self.tool_calls)
        if self.tool_call_id:
            message["tool_call_id"] = self.tool_call_id
        return message


class ToolCallRequest(Frozen):
    """A tool call the caller asks for explicitly (`metadata.tool_calls`)."""

    tool: str = Field(min_length=1)
    args: JsonObject = Field(default_factory=dict)


class AgentRequest(Frozen):
    """What a door hands to the engine, and the body of `POST /v1/agent`.

    `messages` overrides the stored history of `conversation_id` for this call only. `metadata.tools` narrows the
    run to the named tools; `metadata.tool_calls` are executed and reported.
    """

    # Doors refuse other fields, with the one that may have been meant; logs of later versions may hold some.
    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": False})

    prompt: str = ""
    conversation_id: str | None = Field(default=None, max_length=NAME_CHARS)
    session_id: str | None = Field(
        default=None, max_length=NAME_CHARS, exclude=True, description="another name of conversation_id"
    )
    metadata: Annotated[JsonObject, BeforeValidator(lambda given: {} if given is None else given)] = Field(
        default_factory=dict, json_schema_extra={"type": ["object", "null"]}
    )
    messages: tuple[ChatMessage, ...] | None = None
    room: str | None = None
    images: tuple[str, ...] = ()
    client_tools: tuple[JsonObject, ...] = Field(
        default=(), description="tools the client would run itself; only rooms that are a plain model use them"
    )
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    options: JsonObject = Field(
        default_factory=dict,
        description="what else the model that writes the answer is asked with, in OpenAI's names: top_p, stop, seed, "
        "response_format",
    )
    stream: bool = Field(default=False, description="at /v1/agent: send every event as it happens, then the response")

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, data: object) -> object:
        """`session_id` becomes `conversation_id`. An empty name is none: all who send one would share what is said."""
        if not isinstance(data, dict):
            return data
        unnamed = [name for name in ("conversation_id", "session_id") if _is_blank(data.get(name))]
        if unnamed:
            data = {**data, **dict.fromkeys(unnamed)}
        session = data.get("session_id")
        if not isinstance(session, str) or len(session) > NAME_CHARS:
            return data
        if data.get("conversation_id") not in (None, session):
            raise ValueError("'session_id' is another name of 'conversation_id': give one of them, or both the same")
        return {**data, "conversation_id": session, "session_id": None}

    def caller_metadata(self) -> JsonObject:
        """The caller's metadata without the keys the engine writes."""
        return {key: value for key, value in self.metadata.items() if key not in RESERVED_METADATA}


def _is_blank(name: object) -> bool:
    return isinstance(name, str) and not name.strip()
