"""Guard: redacts the prompt and removes hidden characters. `validate_request` refuses requests before a run exists."""

import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches

from agent.answers.schema_check import get_requested_schema
from agent.core.errors import BadRequestError, TooLargeError, ToolUnknownError
from agent.core.events import InputGuarded, RunFailed
from agent.core.models import LOCAL_OWNER, MODEL_OPTIONS, AgentRequest, Room, ToolCallRequest
from agent.core.models.request import CALL_FORM, MAX_METADATA_ENTRIES, MAX_TOOLS_IN_BODY, read_explicit_tool_calls
from agent.core.plan_references import find_references
from agent.core.settings import Settings
from agent.execution.given_plan import take_over_request
from agent.execution.static_plans import quote_call_args
from agent.planning.normalise import COMPLETION_NAMES
from agent.policy.redaction.requests import check_prompt, scan_request
from agent.run_context.run import Run
from agent.skills import SkillLibrary
from agent.text.plurals import format_count
from agent.tools import ToolRegistry
from agent.tools.client_tools import check_client_tools
from agent.tools.external_schema import MAX_CHARS

_CALL_FIELDS = frozenset({"tool", "name", "args", "arguments", "id", "step_id", "description", "tool_call", "status"})


def validate_request(
    request: AgentRequest,
    room: Room,
    owner: str | None = None,
    *,
    registry: ToolRegistry,
    skills: SkillLibrary,
    settings: Settings,
    sees_pictures: Callable[[Room], bool],
) -> None:
    """Raises `BadRequestError` or `TooLargeError` for a request that this room cannot serve.

    Another owner's tools do not exist for `owner`, in no message either. None: all tools are known.
    """
    handed_on = not room.planning and room.skill is None and bool(request.messages)
    if not request.prompt.strip() and not request.images and not handed_on and not read_explicit_tool_calls(request):
        raise BadRequestError("the request is empty: send a prompt", param="prompt")
    _check_sizes(request, settings)
    has_images = bool(request.images) or any(message.images for message in request.messages or ())
    if has_images and not sees_pictures(room):
        raise BadRequestError(
            f"the room {room.id!r} accepts no images; send text, or use a room with vision", param="messages"
        )
    wanted = _get_requested_names(request, "tools")
    _check_names(
        [registry.resolve_in_room(room, name) for name in wanted or ()],
        _get_requested_names(request, "skills") or (),
        registry,
        skills,
        owner,
    )
    if not isinstance(request.metadata.get("approve_plan", False), bool):
        raise BadRequestError("metadata.approve_plan must be true or false", param="metadata.approve_plan")
    _check_options(request)
    if request.client_tools and room.offers_client_tools:
        shared = {tool.spec.name for tool in registry if tool.spec.owner == LOCAL_OWNER}
        check_client_tools(request, room, shared | {skill.name for skill in skills} | COMPLETION_NAMES)
    calls = read_explicit_tool_calls(request)
    _check_call_fields(request)
    if len(calls) > room.budgets.max_steps:
        raise BadRequestError(
            f"{len(calls)} tool calls are requested; the room {room.id!r} carries out at most {room.budgets.max_steps}",
            param="metadata.tool_calls",
        )
    for place, call in enumerate(calls):
        _check_call_references(calls, place)
        try:
            spec = registry.get(registry.resolve_in_room(room, call.tool), owner).spec
        except ToolUnknownError as error:
            raise BadRequestError(error.message, param="metadata.tool_calls") from error
        if wanted is not None and not {call.tool, spec.name}.intersection(wanted):
            raise BadRequestError(f"{call.tool!r} is not among metadata.tools", param="metadata.tool_calls")
        if not spec.is_allowed_in(room):
            raise BadRequestError(
                f"the room {room.id!r} does not allow the tool {call.tool!r}", param="metadata.tool_calls"
            )


def _check_call_references(calls: Sequence[ToolCallRequest], place: int) -> None:
    """Raises `BadRequestError` if a call refers to anything but the results of the calls before it: `s1`, `s2` ..."""
    call, ids = calls[place], [f"s{number}" for number in range(1, len(calls) + 1)]
    unknown = find_references(quote_call_args(call, ids)) - set(ids[:place])
    if unknown:
        raise BadRequestError(
            f"call {place + 1} ({call.tool}) refers to {', '.join(sorted(unknown))}; it may refer to the "
            "calls before it, of which the first is s1",
            param="metadata.tool_calls",
        )


def _get_requested_names(request: AgentRequest, kind: str) -> list[str] | None:
    """The tools or skills to which a request limits itself, or None."""
    wanted = request.metadata.get(kind)
    if wanted is None:
        return None
    if not isinstance(wanted, list):
        raise BadRequestError(f"metadata.{kind} must be a list of {kind[:-1]} names", param=f"metadata.{kind}")
    names = [name for name in wanted if isinstance(name, str)]
    if len(names) != len(wanted):
        raise BadRequestError(f"metadata.{kind} must be a list of {kind[:-1]} names", param=f"metadata.{kind}")
    return names


def _check_names(
    tools: Iterable[str], named: Iterable[str], registry: ToolRegistry, skills: SkillLibrary, owner: str | None
) -> None:
    """Raises `BadRequestError` for unknown names of tools or skills."""
    for tool in tools:
        if not registry.is_known_to(owner, tool) and registry.get_withheld_reason(tool, owner) is None:
            names = ", ".join(get_close_matches(tool, registry.list_visible_names(owner), n=3))
            hint = f"; did you mean {names}?" if names else "; `stepgate tools` lists them"
            raise BadRequestError(f"metadata.tools: there is no tool {tool[:100]!r}{hint}", param="metadata.tools")
    for skill in named:
        if skill not in skills:
            names = ", ".join(one.name for one in skills) or "none"
            raise BadRequestError(
                f"metadata.skills: there is no skill {skill[:100]!r}; known: {names}", param="metadata.skills"
            )


def _check_sizes(request: AgentRequest, settings: Settings) -> None:
    """Raises `TooLargeError` and names the setting. The doors limit bytes; this limits characters and messages."""
    messages, most = request.messages or (), settings.max_message_chars
    if len(messages) > settings.max_messages:
        problem = f"{len(messages):,} messages are given; at most {settings.max_messages:,} are accepted"
        raise TooLargeError(problem, param="messages")
    for where, what, given, limit in (
        ("client_tools", "tools", len(request.client_tools), MAX_TOOLS_IN_BODY),
        ("metadata", "entries of metadata", len(request.metadata), MAX_METADATA_ENTRIES),
    ):
        if given > limit:
            raise TooLargeError(f"{given:,} {what} are given; at most {limit:,} are accepted", param=where)
    for where, text in (("prompt", request.prompt), *((f"messages[{i}]", m.content) for i, m in enumerate(messages))):
        if len(text) > most:
            problem = f"{where} has {len(text):,} characters; the limit is {most:,}"
            raise TooLargeError(problem, param=where)


def _check_options(request: AgentRequest) -> None:
    """Raises `BadRequestError` for options that are not parameters of the answer. `model`, `messages` or `api_base`
    would replace the gateway's own.
    """
    unknown = next((name for name in request.options if name not in MODEL_OPTIONS), None)
    if unknown is not None:
        option_names = ", ".join(sorted(MODEL_OPTIONS))
        raise BadRequestError(f"options.{unknown[:100]} is unknown; the options are {option_names}", param="options")
    size = len(json.dumps(get_requested_schema(request.options))) if "response_format" in request.options else 0
    if size > MAX_CHARS:
        message = f"the schema of response_format has {size:,} characters as JSON; the limit is {MAX_CHARS:,}"
        raise BadRequestError(message, param="response_format")


def _check_call_fields(request: AgentRequest) -> None:
    """Raises `BadRequestError` for unknown fields of a call, because ignoring them would change the call."""
    calls = request.metadata.get("tool_calls")
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        unknown = next((name for name in call if name not in _CALL_FIELDS), None) if isinstance(call, dict) else None
        if unknown is not None:
            raise BadRequestError(
                f"metadata.tool_calls[{index}]: unknown field {unknown!r}; {CALL_FORM}", param="metadata.tool_calls"
            )


async def guard(run: Run) -> None:
    """Records the prompt for the rest of the run: without hidden characters, redacted by the room's policy.

    If the room blocks any text of the request, the run ends. A run with a given plan takes over what the earlier run
    recorded.
    """
    given = run.state.given
    if given is not None:
        await take_over_request(run, given)
        return
    prompt = run.state.request.prompt
    visible = prompt if prompt.isascii() and "\x00" not in prompt else strip_hidden(prompt)
    removed = len(prompt) - len(visible)
    findings = (f"removed from the prompt: {format_count(removed, 'hidden character')}",) if removed else ()
    guards = run.room.guard_input
    checked = await check_prompt(visible, guards)
    beside, refused = await scan_request(run.state.request, guards) if checked.blocked is None else ((), None)
    guarded = InputGuarded(
        prompt=checked.prompt,
        removed_characters=removed,
        findings=(*findings, *checked.findings, *beside),
        placeholders=checked.placeholders or {},
    )
    blocked = checked.blocked or refused
    if blocked is not None:
        await run.emit(guarded, RunFailed(failure=blocked.model_copy(update={"stage": "guard"})))
    else:
        await run.note(guarded)


def strip_hidden(text: str) -> str:
    """Removes from `text` control, tag and bidirectional-override characters, which only a model reads.

    Keeps joiners (U+200C, U+200D), because Persian, Indic scripts and emoji need them.
    """
    # By the characters that occur, not by each place: a megabyte of Arabic held the loop for a second.
    hidden = {
        ord(char): None
        for char in set(text)
        if char not in "\n\t\r\u200c\u200d" and unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs")
    }
    return text.translate(hidden) if hidden else text
