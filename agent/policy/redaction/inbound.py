"""Redacts what a model reads: personal data and credentials are replaced by placeholders.

The placeholders of a run are in its log. Tools get the values back, and people what is personal; credentials come back
to tools only. The secrets of this gateway's settings get no placeholder: they are removed for good.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from pydantic import JsonValue

from agent.core.event_loop import compute_beside_loop
from agent.core.models import ChatMessage, JsonObject, RoomGuards
from agent.core.run_state import RunState
from agent.llm.port import ModelReply
from agent.llm.provider_fields import OPAQUE_FIELDS, iter_reasoning_texts, map_reasoning
from agent.policy.redaction.requests import make_input_guardrails
from agent.policy.redaction.secrets import make_secret_finder

if TYPE_CHECKING:
    from agent.policy.guardrails import PlaceholderMap
    from agent.policy.guardrails.models import Finding

CREDENTIAL = "CREDENTIAL"
"""The kind of all placeholders for credentials."""
CACHED_CHARS = 4_000
"""The findings of messages up to this length are kept for the next turn of their conversation."""
_OPAQUE = frozenset({"image_url", *OPAQUE_FIELDS})
"""Keys of messages that hold pictures and signatures, which are not text."""


class HistoryRedactor:
    """Replaces personal data and credentials in earlier messages, where the room does so with prompts.

    Its placeholders continue those of the prompt. `new_placeholders` belongs into the log together with the texts."""

    def __init__(self, state: RunState, secrets: tuple[str, ...]) -> None:
        guards = state.room.guard_input
        self._kinds = tuple(name for name in ("pii", "secret") if getattr(guards, name) == "redact")
        self._configured = make_secret_finder(secrets, "known")
        self._known_placeholders = get_placeholders(state)
        self._placeholders = self._known_placeholders

    @property
    def new_placeholders(self) -> dict[str, str]:
        """The placeholders that the log does not hold yet, with their values."""
        if self._placeholders is None or self._placeholders is self._known_placeholders:
            return {}
        former = self._known_placeholders.entries if self._known_placeholders is not None else {}
        entries = self._placeholders.entries
        return {sign: value for sign, value in entries.items() if sign not in former}

    async def redact_messages(self, messages: Iterable[ChatMessage]) -> tuple[ChatMessage, ...]:
        """The messages with their texts and their calls of a client's tools redacted."""
        return tuple([await self._redact_message(message) for message in messages])

    async def redact_text(self, text: str) -> str:
        """A text without this gateway's secrets and, if the room wants it, with placeholders for personal data."""
        from agent.policy.guardrails import PlaceholderMap  # noqa: PLC0415 - loaded with the first request

        text = self._configured.redact(text)
        if not self._kinds or not text:
            return text
        if self._placeholders is None or self._placeholders is self._known_placeholders:
            self._placeholders = PlaceholderMap(
                self._known_placeholders.entries if self._known_placeholders is not None else {}
            )
        placeholders = self._placeholders
        return await compute_beside_loop(len(text), lambda: _replace_private(text, self._kinds, placeholders))

    def anonymize_messages(self, messages: Iterable[ChatMessage]) -> list[str]:
        """The texts of redacted messages as a memory keeps them: the kind of a value, not the value."""
        if self._placeholders is None:
            return [message.content for message in messages]
        return [self._placeholders.anonymize_placeholders(message.content) for message in messages]

    async def add_tool_texts(self, tools: Iterable[JsonObject]) -> None:
        """Makes placeholders for what a client's tools contain; `redact_for_model` puts them there."""
        from agent.policy.guardrails.spans import map_json_texts  # noqa: PLC0415 - as above

        texts: list[str] = []

        def collect(text: str, _: str) -> str:
            texts.append(text)
            return text

        for tool in tools:
            map_json_texts(tool, collect)
        for text in texts:
            await self.redact_text(text)

    async def _redact_message(self, message: ChatMessage) -> ChatMessage:
        calls = []
        for call in message.tool_calls:
            function = call.get("function")
            arguments = function.get("arguments") if isinstance(function, dict) else None
            if isinstance(function, dict) and isinstance(arguments, str):
                function = {**function, "arguments": await self.redact_text(arguments)}
                calls.append({**call, "function": function})
            else:
                calls.append(call)
        changed = {text: await self.redact_text(text) for text in iter_reasoning_texts(message.provider_fields)}
        fields = map_reasoning(message.provider_fields, lambda text: changed.get(text, text))
        # A placeholder is no valid name for providers: a name that is personal data is left out.
        name = message.name if message.name and await self.redact_text(message.name) == message.name else None
        update = {"content": await self.redact_text(message.content), "provider_fields": fields, "name": name}
        return message.model_copy(update={**update, "tool_calls": tuple(calls)})


def redact_for_model(
    items: tuple[JsonObject, ...], state: RunState, secrets: tuple[str, ...]
) -> tuple[JsonObject, ...]:
    """Messages to a model, or tools it may call, without what the prompt had taken out.

    A value that got a placeholder reaches the model by no other way either: not by a tool's result, a document or a
    memory that holds it. Nor does a secret of this gateway."""
    placeholders, own = get_placeholders(state), make_secret_finder(secrets, "known")
    if placeholders is None and not secrets:
        return items

    def redact(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            value = own.redact(value) if own.may_contain_secret(value) else value
            return placeholders.mask_known_values(value) if placeholders is not None else value
        if isinstance(value, list):
            return [redact(item) for item in value]
        return redact_object(value) if isinstance(value, dict) else value

    def redact_object(value: JsonObject) -> JsonObject:
        return {key: item if key in _OPAQUE else redact(item) for key, item in value.items()}

    return tuple(redact_object(item) for item in items)


def redact_reply(reply: ModelReply, secrets: tuple[str, ...]) -> ModelReply:
    """A model's reply without this gateway's secrets: plans, arguments and verdicts are made from it."""
    own = make_secret_finder(secrets, "known")
    texts = (reply.text, reply.reasoning, *(call.arguments for call in reply.tool_calls))
    reasoned = iter_reasoning_texts(reply.provider_fields) if reply.provider_fields else ()
    if not any(own.may_contain_secret(text) for text in (*texts, *reasoned)):
        return reply
    calls = tuple(replace(call, arguments=own.redact(call.arguments)) for call in reply.tool_calls)
    fields = map_reasoning(reply.provider_fields, own.redact)
    reasoning = own.redact(reply.reasoning)
    return replace(reply, text=own.redact(reply.text), reasoning=reasoning, tool_calls=calls, provider_fields=fields)


def get_placeholders(state: RunState) -> "PlaceholderMap | None":
    """The placeholders of a run: of its prompt and of what was said before. None where there are none."""
    of_prompt = state.input_guard.placeholders if state.input_guard is not None else {}
    of_history = state.retrieval.placeholders if state.retrieval is not None else {}
    given = {**of_prompt, **of_history} if of_prompt and of_history else of_prompt or of_history  # may be thousands
    if not given:
        return None
    from agent.policy.guardrails import PlaceholderMap  # noqa: PLC0415 - loaded with the first request

    return PlaceholderMap(given)


def get_placeholders_for_people(state: RunState) -> "PlaceholderMap | None":
    """The placeholders as people may read them: a credential stays removed."""
    placeholders = get_placeholders(state)
    if placeholders is None or CREDENTIAL not in placeholders.kinds:
        return placeholders
    removed = f"[removed: {CREDENTIAL}]"
    visible_values = {
        sign: removed if sign.startswith(CREDENTIAL) else value for sign, value in placeholders.entries.items()
    }
    return type(placeholders)(visible_values)


def restore_args(state: RunState, args: JsonObject) -> JsonObject:
    """The arguments of a tool with the values in place of their placeholders."""
    placeholders = get_placeholders(state)
    if placeholders is None:
        return args

    def restore(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return placeholders.restore(value)
        if isinstance(value, list):
            return [restore(item) for item in value]
        if isinstance(value, dict):
            return {key: restore(item) for key, item in value.items()}
        return value

    return {key: restore(value) for key, value in args.items()}


async def restore_long_text(state: RunState, text: str) -> str:
    """`restore_text`, which leaves the event loop to others if the text is long."""
    return await compute_beside_loop(len(text), lambda: restore_text(state, text))


def restore_text(state: RunState, text: str) -> str:
    """A text as the person wrote or reads it, for what is kept for them; credentials stay removed."""
    placeholders = get_placeholders_for_people(state)
    return placeholders.restore(text) if placeholders is not None else text


def replace_with_kinds(state: RunState, text: str) -> str:
    """A text for a memory beyond this run: it says that there was an address, not which."""
    placeholders = get_placeholders(state)
    if placeholders is None:
        return text
    return placeholders.anonymize_placeholders(placeholders.mask_known_values(text))


def _replace_private(text: str, kinds: tuple[str, ...], placeholders: "PlaceholderMap") -> str:
    if placeholders.kinds:
        text = placeholders.escape_foreign_placeholders(text)
    find = _find_private if len(text) <= CACHED_CHARS else _find_private.__wrapped__
    return placeholders.replace_findings(text, find(text, kinds))


@lru_cache(maxsize=1024)
def _find_private(text: str, kinds: tuple[str, ...]) -> "tuple[Finding, ...]":
    """Finds personal data and credentials. Cached: every later turn of a conversation sends the same messages."""
    from agent.policy.guardrails.guardrail_pipeline import select_placeholder_findings  # noqa: PLC0415 - as above
    from agent.policy.guardrails.models import GuardrailsInput  # noqa: PLC0415 - as above

    policy = RoomGuards(**{name: "redact" if name in kinds else "off" for name in ("pii", "secret")})
    findings = make_input_guardrails(policy).run_detectors(GuardrailsInput(content=text, check_type="input_validation"))
    return tuple(select_placeholder_findings(findings))
