"""Guard: requests that cannot be served are refused before a run exists; hidden characters leave the prompt."""

import unicodedata

from pydantic import ValidationError

from agent.core.errors import BadRequestError, TooLargeError, ToolUnknownError
from agent.core.events import InputGuarded, RunFailed
from agent.core.models import AgentRequest, Room, ToolCallRequest
from agent.execution.run import Run
from agent.execution.shield import check_prompt
from agent.tools import ToolRegistry

MAX_PROMPT_CHARS = 1_000_000
"""Longer prompts fit no model's context; the door's body limit is about bytes, this one about sense."""


def admit(request: AgentRequest, room: Room, registry: ToolRegistry) -> None:
    """Raise `BadRequestError` or `TooLargeError` for a request this room can never serve."""
    if not request.prompt.strip() and not request.images and not explicit_tool_calls(request):
        raise BadRequestError("the request is empty: send a prompt", param="prompt")
    if len(request.prompt) > MAX_PROMPT_CHARS:
        raise TooLargeError(
            f"the prompt has {len(request.prompt):,} characters; the limit is {MAX_PROMPT_CHARS:,}", param="prompt"
        )
    has_images = bool(request.images) or any(message.images for message in request.messages or ())
    if has_images and not room.vision:
        raise BadRequestError(
            f"the room {room.id!r} takes no images; send text, or ask a room with vision", param="messages"
        )
    wanted = request.metadata.get("tools")
    if wanted is not None and not (isinstance(wanted, list) and all(isinstance(name, str) for name in wanted)):
        raise BadRequestError("metadata.tools must be a list of tool names", param="metadata.tools")
    calls = explicit_tool_calls(request)
    if len(calls) > room.budgets.max_steps:
        raise BadRequestError(
            f"{len(calls)} tool calls are asked for; the room {room.id!r} carries out at most {room.budgets.max_steps}",
            param="metadata.tool_calls",
        )
    for call in calls:
        try:
            registry.get(call.tool)
        except ToolUnknownError as error:
            raise BadRequestError(error.message, param="metadata.tool_calls") from error
        if isinstance(wanted, list) and call.tool not in wanted:
            raise BadRequestError(f"{call.tool!r} is not among metadata.tools", param="metadata.tool_calls")
        if room.tools is not None and call.tool not in room.tools:
            raise BadRequestError(
                f"the room {room.id!r} does not allow the tool {call.tool!r}", param="metadata.tool_calls"
            )


def explicit_tool_calls(request: AgentRequest) -> tuple[ToolCallRequest, ...]:
    """`metadata.tool_calls`, each `{"tool": ..., "args": {...}}`; `name` and `arguments` are accepted too."""
    calls = request.metadata.get("tool_calls")
    if calls is None:
        return ()
    form = 'metadata.tool_calls must be a list of {"tool": name, "args": {...}}'
    if not isinstance(calls, list):
        raise BadRequestError(form, param="metadata.tool_calls")
    parsed = []
    for call in calls:
        if not isinstance(call, dict):
            raise BadRequestError(form, param="metadata.tool_calls")
        fields = {"tool": call.get("tool", call.get("name")), "args": call.get("args", call.get("arguments", {}))}
        try:
            parsed.append(ToolCallRequest.model_validate(fields))
        except ValidationError as error:
            raise BadRequestError(form, param="metadata.tool_calls") from error
    return tuple(parsed)


async def guard(run: Run) -> None:
    """Record the prompt as the rest of the run sees it: without characters that people cannot see, and without what
    the room takes out. A prompt that the room blocks ends the run."""
    prompt = run.state.request.prompt
    visible = prompt if prompt.isascii() and "\x00" not in prompt else strip_hidden(prompt)
    removed = len(prompt) - len(visible)
    findings = (f"{removed} hidden characters were removed from the prompt",) if removed else ()
    checked = await check_prompt(run, visible)
    guarded = InputGuarded(
        prompt=checked.prompt,
        removed_characters=removed,
        findings=(*findings, *checked.findings),
        placeholders=checked.placeholders or {},
    )
    await run.emit(guarded, *([RunFailed(failure=checked.blocked)] if checked.blocked else []))


def strip_hidden(text: str) -> str:
    """`text` without control, tag and bidirectional-override characters, which carry text only a model reads.

    Joiners (U+200C, U+200D) stay: Persian, Indic scripts and emoji need them."""
    return "".join(
        char
        for char in text
        if char in "\n\t\r\u200c\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Co", "Cs")
    )
