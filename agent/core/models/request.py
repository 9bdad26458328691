"""Requests: a prompt, the conversation so far, and options for tools and models."""

from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, ValidationError, model_validator

from agent.core.errors import BadRequestError
from agent.core.models.room import LARGEST_PLAN, MODEL_MARK
from agent.core.models.words import BOUNDED, PROVIDER_FIELDS, FrozenModel, JsonObject, Role
from agent.core.models.written_call import read_written_call

RESERVED_METADATA = frozenset(
    {
        "plan", "tool_results", "runtime", "usage", "run_id", "room", "status", "gates", "uncertainties", "failure",
        "approvals", "aborted", "reason", "sources", "citations", "tailor", "verification", "client_tool_calls",
        "steps", "stopped", "truncated", "repeats_itself",
    }
)  # fmt: skip
"""Keys that the engine writes into the response's metadata, and `steps`, which completions put beside them. Values of a
caller under them are dropped."""
MAX_CONVERSATION_ID_CHARS = 200
"""Longest conversation id, in characters."""


class ChatMessage(FrozenModel):
    """One message of a conversation. Images are separate, as data or http URLs. `image_lines` says how many lines of
    `content` precede each; without it they follow all."""

    role: Role
    content: str = ""
    images: Annotated[tuple[str, ...], BOUNDED] = ()
    image_lines: Annotated[tuple[int, ...], BOUNDED] = ()
    tool_calls: Annotated[tuple[JsonObject, ...], BOUNDED] = Field(
        default=(), description="calls of the client's own tools, as received"
    )
    tool_call_id: str | None = None
    name: str | None = Field(default=None, description="the name of the speaker, if several have the same role")
    provider_fields: JsonObject = Field(
        default_factory=dict, description="what a provider sent with an answer and wants back: reasoning, signatures"
    )

    def to_openai(self) -> JsonObject:
        """Converts the message to OpenAI's wire form."""
        message: JsonObject = {"role": self.role, "content": self.content}
        if self.images:
            message["content"] = self._build_parts()
        if self.name:
            message["name"] = self.name
        if self.tool_calls:
            message["tool_calls"] = list(self.tool_calls)
            message["content"] = message["content"] or None  # as OpenAI writes it; an empty text is refused by some
        if self.tool_call_id:
            message["tool_call_id"] = self.tool_call_id
        return message | {key: value for key, value in self.provider_fields.items() if key in PROVIDER_FIELDS}

    def _build_parts(self) -> list[JsonValue]:
        """The lines of the content and the images between them, as parts of OpenAI's wire form."""
        lines, start = self.content.split("\n"), 0
        places = self.image_lines if len(self.image_lines) == len(self.images) else ()
        parts: list[JsonValue] = []
        for at, url in enumerate(self.images):
            place = min(max(places[at], start), len(lines)) if places else len(lines)
            parts += _build_text_part(lines[start:place])
            parts.append({"type": "image_url", "image_url": {"url": url}})
            start = place
        return parts + _build_text_part(lines[start:])


def _build_text_part(lines: list[str]) -> list[JsonValue]:
    text = "\n".join(lines)
    return [{"type": "text", "text": text}] if text else []  # Anthropic refuses a text part without text.


MAX_TOOLS_IN_BODY = 512
"""Tools that a body may hold; OpenAI takes 128. `MAX_OFFERED_TOOLS` of them are offered to a model."""
MAX_METADATA_ENTRIES = 1_000
"""Entries of a request's metadata, those of its own objects not counted."""


class ToolCallRequest(FrozenModel):
    """A tool call that the caller requests explicitly (`metadata.tool_calls`)."""

    tool: str = Field(min_length=1)
    args: JsonObject = Field(default_factory=dict)
    intent: str = ""


class AgentRequest(FrozenModel):
    """What a door passes to the engine, and the body of `POST /v1/agent`.

    `messages` replaces the stored history of `conversation_id` for this call only. `prompt` stands among them at
    `prompt_position`; what follows it (calls of a client's tools, their results, a prefilled answer) keeps its place.
    `metadata.tools` restricts the run to the named tools. `metadata.tool_calls` are executed and reported.
    """

    # Doors refuse unknown fields and suggest known ones. Logs of later versions may contain unknown fields.
    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": False})

    prompt: str = ""
    conversation_id: str | None = Field(default=None, max_length=MAX_CONVERSATION_ID_CHARS)
    session_id: str | None = Field(
        default=None, max_length=MAX_CONVERSATION_ID_CHARS, exclude=True, description="another name of conversation_id"
    )
    metadata: Annotated[JsonObject, BeforeValidator(lambda given: {} if given is None else given)] = Field(
        default_factory=dict, json_schema_extra={"type": ["object", "null"]}
    )
    messages: Annotated[tuple[ChatMessage, ...], BOUNDED] | None = None
    parent: str | None = Field(
        default=None,
        max_length=200,
        description="the run of the conversation that this request follows, or `root` for none: another branch; unset: "
        "the newest of the branch that the conversation is at",
    )
    prompt_name: str | None = Field(default=None, description="who speaks in the prompt (OpenAI's `name`)")
    prompt_position: int | None = Field(
        default=None, ge=0, description="how many of the messages come before the prompt; null: all of them"
    )
    room: str | None = Field(default=None, description="a room, or `room@model`; null: the default room")
    images: Annotated[tuple[str, ...], BOUNDED] = ()
    image_lines: Annotated[tuple[int, ...], BOUNDED] = Field(
        default=(), description="how many lines of the prompt precede each image; if empty, all do"
    )
    client_tools: Annotated[tuple[JsonObject, ...], BOUNDED] = Field(
        default=(),
        description="tools that the client runs itself; rooms that are a plain model use them, and rooms that plan "
        "with `client_tools: offer`",
    )
    parallel_client_calls: bool = Field(
        default=True, description="whether a run may end with several calls of the client's tools at once"
    )
    interactive: bool = Field(
        default=True, description="whether a person is there whom the planner may ask for a missing value"
    )
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    options: JsonObject = Field(
        default_factory=dict,
        description="further parameters for the model that writes the answer, in OpenAI's names: top_p, stop, seed, "
        "response_format; the list is in docs/openai.md",
    )
    stream: bool = Field(default=False, description="at /v1/agent: send every event as it happens, then the response")

    def place_images(self, text: str, question: str) -> tuple[int, ...]:
        """The lines of `text` that precede each image, where it holds the prompt as `question`; () if that has other
        lines than the prompt, such as a translation."""
        start = text.rfind(question)
        if start < 0 or question.count("\n") != self.prompt.count("\n"):
            return ()
        before = text.count("\n", 0, start)
        return tuple(before + line for line in self.image_lines)

    @model_validator(mode="before")
    @classmethod
    def _merge_session_id(cls, data: object) -> object:
        """Copies `session_id` to `conversation_id`. Treats a blank name as none: all callers that send one would share
        a history.
        """
        if not isinstance(data, dict):
            return data
        unnamed = [name for name in ("conversation_id", "session_id") if _is_blank(data.get(name))]
        if unnamed:
            data = {**data, **dict.fromkeys(unnamed)}
        session = data.get("session_id")
        if not isinstance(session, str) or len(session) > MAX_CONVERSATION_ID_CHARS:
            return data
        if data.get("conversation_id") not in (None, session):
            raise ValueError(
                "'session_id' is another name of 'conversation_id': send one of them, or both with the same value"
            )
        return {**data, "conversation_id": session, "session_id": None}

    @property
    def is_first_message(self) -> bool:
        """Whether it can answer nothing: it names no conversation, and no assistant or tool has said anything."""
        earlier = self.messages or ()
        return self.conversation_id is None and all(one.role not in ("assistant", "tool") for one in earlier)

    def name_room(self, room_id: str) -> str:
        """Makes the id of a room with the model that this request chose: `room@model`, or `room` without a choice."""
        model = self.chosen_model
        return room_id if model is None else f"{room_id}{MODEL_MARK}{model}"

    @property
    def chosen_model(self) -> str | None:
        """The model that the caller chose with `room@model`; None for the room's own."""
        return (self.room or "").partition(MODEL_MARK)[2] or None

    def get_caller_metadata(self) -> JsonObject:
        """The caller's metadata without the keys that the engine writes."""
        return {key: value for key, value in self.metadata.items() if key not in RESERVED_METADATA}


def _is_blank(name: object) -> bool:
    return isinstance(name, str) and not name.strip()


CALL_FORM = (
    'each call is {"tool": name, "args": {...}}, or {"step_id": 1, "description": text, "tool_call": "name(key=value)"}'
)


def read_explicit_tool_calls(request: AgentRequest) -> tuple[ToolCallRequest, ...]:
    """Reads `metadata.tool_calls`, each `{"tool": ..., "args": {...}}` or a step as `/query` shows its plan.

    Accepts `name` and `arguments` too. The completion at the end of such a plan is left out: the answer is written
    anyway. A completed step is refused, as it would be done a second time.
    """
    calls = request.metadata.get("tool_calls")
    if calls is None:
        return ()
    form = f"metadata.tool_calls must be a list; {CALL_FORM}"
    if not isinstance(calls, list):
        raise BadRequestError(form, param="metadata.tool_calls")
    if len(calls) > LARGEST_PLAN:  # no room takes as many
        raise BadRequestError(
            f"{len(calls):,} tool calls are requested; at most {LARGEST_PLAN} are made", param="metadata.tool_calls"
        )
    parsed = []
    wanted = calls[:-1] if calls and _is_completion(calls[-1]) else calls
    for place, call in enumerate(wanted, start=1):
        if not isinstance(call, dict):
            raise BadRequestError(form, param="metadata.tool_calls")
        try:
            parsed.append(ToolCallRequest.model_validate(_read_call(call, place)))
        except ValidationError as error:
            raise BadRequestError(form, param="metadata.tool_calls") from error
    return tuple(parsed)


def _is_completion(call: JsonValue) -> bool:
    tool, _ = read_written_call(call.get("tool_call")) if isinstance(call, dict) else (None, None)
    return tool == "completion"


def _read_call(call: JsonObject, place: int) -> JsonObject:
    """The fields of a call. A step's number is its place, as results are referred to by it."""
    if call.get("status") == "completed":
        raise BadRequestError(
            f"metadata.tool_calls: step {place} is completed and would run again; leave it out, or set its "
            'status to "pending" to repeat it',
            param="metadata.tool_calls",
        )
    if call.get("step_id", place) not in (place, str(place), f"s{place}"):
        raise BadRequestError(
            f"metadata.tool_calls: step_id {call['step_id']!r} is at place {place}; number the steps from 1",
            param="metadata.tool_calls",
        )
    if "tool_call" not in call:
        tool, args = call.get("tool", call.get("name")), call.get("args", call.get("arguments", {}))
    elif {"tool", "name", "args", "arguments"} & call.keys():
        raise BadRequestError(
            f"metadata.tool_calls: call {place} has its tool or its arguments twice; tool_call holds both",
            param="metadata.tool_calls",
        )
    else:
        tool, args = read_written_call(call["tool_call"])
    intent = str(call.get("description") or "")[:500]
    return {"tool": tool, "args": {} if args is None else args, "intent": intent}
