"""Conversations of single tool calls: over MCP, the caller names the conversation whose pipeline a tool works on.

Inside of a chat a tool works on the chat's own. A call over MCP belongs to no chat, so its tool has one more argument,
and its result says which conversation it was.
"""

import mcp_types as types

from agent.core.errors import BadRequestError
from agent.core.json_schema import get_properties
from agent.core.models import MAX_CONVERSATION_ID_CHARS, JsonObject
from agent.runs.run_intake import RunIntake
from agent.tools import ToolSpec
from mcp_tools.server.current_principal import get_current_owner

ARGUMENT = "conversation_id"
_MISSING = f"{ARGUMENT}: name the conversation that this call continues: the {ARGUMENT} that an earlier call returned"
_DESCRIPTIONS = {
    "starts": f"the {ARGUMENT} that an earlier call returned, to continue there, or a new name, to begin another; "
    "without it, this session's conversation or a new one",
    "continues": f"the {ARGUMENT} that an earlier call returned; can be left out only where a session has one",
}


def add_argument(spec: ToolSpec) -> JsonObject:
    """The schema of the tool's arguments, with the conversation if it works on one."""
    if spec.conversation == "none":
        return spec.input_schema
    return _add_property(spec.input_schema, _DESCRIPTIONS[spec.conversation], MAX_CONVERSATION_ID_CHARS)


def add_result(spec: ToolSpec) -> JsonObject | None:
    """The schema of the tool's results, with the conversation if it works on one."""
    if spec.conversation == "none" or spec.output_schema is None:
        return spec.output_schema
    return _add_property(spec.output_schema, f"pass it as {ARGUMENT} to the calls that continue")


async def take_conversation(
    intake: RunIntake, spec: ToolSpec, arguments: JsonObject, session: str | None
) -> tuple[JsonObject, str | None]:
    """The tool's own arguments, and the id of the conversation that the call works on; None if it works on none.

    `session` is a name of the client's session, whose conversation is meant by a call that names none. Raises
    `BadRequestError` for a missing or unusable name, `NotFoundError`, and `ConflictError` while the conversation is
    being answered or changed.
    """
    if spec.conversation == "none" or intake.conversations is None:
        return arguments, None
    name = arguments.get(ARGUMENT)
    own = {key: value for key, value in arguments.items() if key != ARGUMENT}
    if name is not None and not isinstance(name, str):
        raise BadRequestError(f"{ARGUMENT}: this must be text", param=ARGUMENT)
    if name is not None and len(name) > MAX_CONVERSATION_ID_CHARS:
        raise BadRequestError(f"{ARGUMENT}: at most {MAX_CONVERSATION_ID_CHARS} characters", param=ARGUMENT)
    named = (name or "").strip() or session
    starts = spec.conversation == "starts"
    if not starts and (named is None or (named == session and not await _exists(intake, named))):
        raise BadRequestError(_MISSING, param=ARGUMENT)
    conversation = await intake.conversations.get_id_for_call(named, owner=get_current_owner(), may_start=starts)
    return own, conversation


def add_conversation(result: types.CallToolResult, conversation_id: str | None) -> types.CallToolResult:
    """The result with the conversation, for clients that read the text and for those that read the JSON."""
    if conversation_id is None:
        return result
    text = types.TextContent(type="text", text=f"{ARGUMENT}: {conversation_id}")
    structured = result.structured_content
    if isinstance(structured, dict):
        structured = {**structured, ARGUMENT: conversation_id}
    return result.model_copy(update={"content": [*result.content, text], "structured_content": structured})


async def _exists(intake: RunIntake, name: str) -> bool:
    conversations = intake.conversations
    return conversations is not None and await conversations.find_id(name, owner=get_current_owner()) is not None


def _add_property(schema: JsonObject, description: str, max_length: int | None = None) -> JsonObject:
    conversation: JsonObject = {"type": "string", "description": description}
    if max_length is not None:
        conversation["maxLength"] = max_length
    return {**schema, "properties": {**get_properties(schema), ARGUMENT: conversation}}
