"""The body of `POST /v1/chat/completions` as clients send it."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, field_validator

from agent.core.models import JsonObject
from agent.core.models.request import MAX_TOOLS_IN_BODY
from agent.core.models.words import BOUNDED
from agent.llm.replies import read_arguments


def _read_whole(value: object) -> object:
    """A whole number that a language without integers writes as `100.0`."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _read_limit(value: object) -> object:
    """A limit of tokens; 0 and -1 say that there is none, as LM Studio and llama.cpp have it."""
    whole = _read_whole(value)
    return None if isinstance(whole, int) and not isinstance(whole, bool) and whole in (0, -1) else whole


def _refuse_many(value: object) -> object:
    if isinstance(value, dict) and len(value) > MAX_BIASES:
        raise ValueError(f"at most {MAX_BIASES:,} entries are accepted")
    return value


MAX_BIASES: Final = 1_000
"""OpenAI takes 300."""
LogitBias = Annotated[dict[str, float] | None, BeforeValidator(_refuse_many)]
WholeNumber = Annotated[int, BeforeValidator(_read_whole)]
TokenLimit = Annotated[Annotated[int, Field(ge=1)] | None, BeforeValidator(_read_limit)]


class WireModel(BaseModel):
    """An object that clients send. Known fields are checked, by their JSON types; the others are kept for
    `openai_messages.list_ignored`.
    """

    model_config = ConfigDict(extra="allow", strict=True)


class ImageUrl(WireModel):
    """An image by URL or data URL."""

    url: str = Field(max_length=20_000_000)


class ContentPart(WireModel):
    """A part of a message."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | None = None

    @field_validator("image_url", mode="before")
    @classmethod
    def _convert_text(cls, value: object) -> object:
        """Accepts the address alone, as several clients send it."""
        return {"url": value} if isinstance(value, str) else value


class WireMessage(WireModel):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[ContentPart], BOUNDED] | None = None
    name: str | None = None
    tool_calls: Annotated[list[JsonObject], BOUNDED] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning_content: JsonValue = None
    reasoning: JsonValue = None
    reasoning_details: JsonValue = None
    thinking_blocks: JsonValue = None
    extra_content: JsonValue = None
    function_call: JsonValue = None
    audio: JsonValue = None

    @field_validator("tool_calls", mode="after")
    @classmethod
    def _complete_calls(cls, calls: list[JsonObject] | None) -> list[JsonObject] | None:
        """Gives calls their type and their arguments as text, which some clients leave out and many servers require."""
        return calls and [_complete_call(call) for call in calls]


class StreamOptions(WireModel):
    """Options of a stream."""

    include_usage: bool | None = False


class ChatCompletionRequest(WireModel):
    """The body of `POST /v1/chat/completions`."""

    model: str = Field(min_length=1)
    messages: Annotated[list[WireMessage], BOUNDED] = Field(min_length=1)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: WholeNumber | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: TokenLimit = None
    max_completion_tokens: TokenLimit = None
    top_p: float | None = Field(default=None, ge=0, le=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    seed: WholeNumber | None = None
    stop: str | Annotated[list[str], BOUNDED] | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    top_k: WholeNumber | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    repeat_penalty: float | None = None
    chat_template_kwargs: JsonObject | None = None
    enable_thinking: bool | None = None
    thinking: JsonValue = None
    reasoning: JsonValue = None
    grammar: str | None = None
    guided_choice: JsonValue = None
    guided_grammar: JsonValue = None
    guided_json: JsonValue = None
    guided_regex: JsonValue = None
    json_schema: JsonValue = None
    structured_outputs: JsonObject | None = None
    logit_bias: LogitBias = None
    prediction: JsonObject | None = None
    web_search_options: JsonObject | None = None
    service_tier: str | None = None
    store: bool | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: JsonObject | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    logprobs: bool | None = None
    top_logprobs: WholeNumber | None = None
    functions: Annotated[list[JsonObject], BOUNDED] | None = None
    function_call: str | JsonObject | None = None
    modalities: Annotated[list[str], BOUNDED] | None = None
    audio: JsonObject | None = None
    moderation: JsonObject | None = None
    parallel_tool_calls: bool | None = None
    tools: list[JsonObject] | None = Field(default=None, max_length=MAX_TOOLS_IN_BODY)
    tool_choice: Literal["none", "auto", "required"] | JsonObject | None = None
    response_format: JsonObject | None = None
    metadata: JsonObject | None = None
    user: str | None = None

    @field_validator("tool_choice", mode="before")
    @classmethod
    def _read_tool_choice(cls, value: object) -> object:
        """Accepts Mistral's word for `required`, and no choice as an empty text."""
        return {"any": "required", "": None}.get(value, value) if isinstance(value, str) else value

    @field_validator("tools", mode="after")
    @classmethod
    def _nest_tools(cls, tools: list[JsonObject] | None) -> list[JsonObject] | None:
        """Accepts tools in the forms of other APIs."""
        return tools and [_nest_function(tool) for tool in tools]


def _complete_call(call: JsonObject) -> JsonObject:
    function = call.get("function")
    if not isinstance(function, dict):
        return call
    return {
        "type": "function",
        **call,
        "function": {**function, "arguments": read_arguments(function.get("arguments"))},
    }


def _nest_function(tool: JsonObject) -> JsonObject:
    """A function whose name stands beside its type, as in the Responses API (Cursor), in Anthropic's or in MCP, as chat
    completions have it; any other tool as it is."""
    if "function" in tool or "name" not in tool or tool.get("type", "function") != "function":
        return tool
    function: JsonObject = {key: tool[key] for key in ("name", "description", "parameters", "strict") if key in tool}
    for name in ("input_schema", "inputSchema"):
        if name in tool:
            function.setdefault("parameters", tool[name])
    return {"type": "function", "function": function}
