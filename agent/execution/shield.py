"""The guardrails of a run: its prompt on the way in, its answer on the way out, by the policies of its room.

On the way in, what the room takes out of a prompt (personal data) gets a placeholder; tools and the person get the
value back. On the way out, credentials never leave, whatever the room says; and once the run has read text from
outside, no image is loaded and no link carries that text away. The filters of the way out give the same text however a
stream is cut.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

from pydantic import JsonValue

from agent.core.errors import AgentFailure
from agent.core.events import InputGuarded
from agent.core.fold import RunState
from agent.core.models import ChatMessage, JsonObject, RoomGuards
from agent.execution.run import Run

if TYPE_CHECKING:
    from agent.guardrails import Guardrails, GuardrailsOutput, Links, Secrets, Vault

OUTSIDE_CHARS = 200_000
"""How much of what was read is held against the links of an answer."""


SECRET_CHARS = 8
"""Shorter settings are no secrets worth the name: `none` is one."""


class Stream(Protocol):
    """A filter over a text that comes in pieces."""

    def feed(self, piece: str) -> str:
        """What can be said for certain after one more piece."""
        ...

    def end(self) -> str:
        """The rest."""
        ...


@dataclass(frozen=True, slots=True)
class Checked:
    """A prompt as the rest of the run sees it; `blocked` is why it sees none."""

    prompt: str
    findings: tuple[str, ...] = ()
    placeholders: dict[str, str] | None = None
    blocked: AgentFailure | None = None


class Outgoing:
    """What an answer passes on its way out of one run."""

    def __init__(self, run: Run) -> None:
        self._vault = vault_of(run.state)
        self._secrets = secrets_of(run)
        self._links = _links(run.state)

    def text(self, text: str) -> str:
        """A whole answer."""
        text = self._secrets.redact(text)
        if self._links is not None:
            text = self._links.defuse(text)
        return self._vault.restore(text) if self._vault is not None else text

    def stream(self) -> "OutgoingStream":
        """The same for an answer in pieces."""
        stages: list[Stream] = [self._secrets.stream()]
        if self._links is not None:
            stages.append(self._links.stream())
        if self._vault is not None:
            stages.append(self._vault.restorer())
        return OutgoingStream(stages)


class OutgoingStream:
    """One filter after the other."""

    def __init__(self, stages: list[Stream]) -> None:
        self._stages = stages

    def feed(self, piece: str) -> str:
        """What can be said after one more piece."""
        for stage in self._stages:
            piece = stage.feed(piece)
        return piece

    def end(self) -> str:
        """The rest, of each filter through those behind it."""
        said = ""
        for stage in self._stages:
            said = stage.feed(said) + stage.end() if said else stage.end()
        return said


async def check_prompt(run: Run, prompt: str) -> Checked:
    """The prompt by the room's policy."""
    from agent.guardrails import GuardrailsInput, Vault  # noqa: PLC0415 - loaded with the first request

    if not _looks(run.room.guard_input):
        return Checked(prompt)
    guardrails = await asyncio.to_thread(_guardrails, run.room.guard_input)
    vault = Vault()
    found = await guardrails.check(GuardrailsInput(content=prompt, check_type="input_validation"), vault)
    findings = () if found.is_safe else (found.reasoning,)
    if found.action == "block":
        return Checked("", findings, blocked=_blocked(found))
    return Checked(found.sanitized_content, findings, vault.entries or None)


async def redact_history(run: Run, messages: Iterable[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Earlier messages with the placeholders of the prompt, where the room takes personal data out."""
    from agent.guardrails import GuardrailsInput, Vault  # noqa: PLC0415 - as above

    messages = tuple(messages)
    if run.room.guard_input.pii != "redact":
        return messages
    guardrails = await asyncio.to_thread(_guardrails, RoomGuards(pii="redact"))
    vault = vault_of(run.state) or Vault()
    kept = []
    for message in messages:
        found = await guardrails.check(GuardrailsInput(content=message.content, check_type="input_validation"), vault)
        kept.append(message.model_copy(update={"content": found.sanitized_content}))
    return tuple(kept)


def restored_args(state: RunState, args: JsonObject) -> JsonObject:
    """The arguments of a tool with the values in the place of their placeholders."""
    vault = vault_of(state)
    if vault is None:
        return args

    def change(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return vault.restore(value)
        if isinstance(value, list):
            return [change(item) for item in value]
        if isinstance(value, dict):
            return {key: change(item) for key, item in value.items()}
        return value

    return {key: change(value) for key, value in args.items()}


def vault_of(state: RunState) -> "Vault | None":
    """The placeholders of a run; None where there are none."""
    guarded: InputGuarded | None = state.guarded
    if guarded is None or not guarded.placeholders:
        return None
    from agent.guardrails import Vault  # noqa: PLC0415 - as above

    return Vault(guarded.placeholders)


def secrets_of(run: Run) -> "Secrets":
    """What finds credentials: well-known forms, and every secret of this gateway's settings."""
    return _secrets(run.engine.settings.secret_values())


def without_secrets(run: Run, text: str) -> str:
    """A text of a tool without the secrets of this gateway's own settings, as they are or encoded."""
    for secret in _spellings(run.engine.settings.secret_values()):
        if secret in text:
            text = text.replace(secret, "[removed: SECRET]")
    return text


@cache
def _spellings(configured: tuple[str, ...]) -> tuple[str, ...]:
    from agent.guardrails.secrets import encodings  # noqa: PLC0415 - as above

    found = {spelling for value in configured if len(value) >= SECRET_CHARS for spelling in encodings(value)}
    return tuple(sorted(found, key=len, reverse=True))


def _links(state: RunState) -> "Links | None":
    """What defuses links; None as long as nothing from outside was read. What a model made of it is no source."""
    calls = (call for step in state.steps.values() for attempt in step.attempts for call in attempt.calls)
    outside = [call.returned.text for call in calls if call.returned is not None and call.returned.tainted]
    outside += [item.text for item in (state.retrieved.items if state.retrieved else ()) if item.tainted]
    if not outside:
        return None
    from agent.guardrails import Links  # noqa: PLC0415 - as above

    inside = (state.prompt, state.room.system_prompt, *(message.content for message in state.request.messages or ()))
    return Links(outside=("\n".join(outside)[:OUTSIDE_CHARS],), inside=inside)


@cache
def _guardrails(guards: RoomGuards) -> "Guardrails":
    from agent.guardrails import Guardrails, GuardrailsPolicy  # noqa: PLC0415 - as above

    return Guardrails(GuardrailsPolicy(**guards.model_dump()))


@cache
def _secrets(configured: tuple[str, ...]) -> "Secrets":
    from agent.guardrails import Secrets  # noqa: PLC0415 - as above

    return Secrets(configured)


def _looks(guards: RoomGuards) -> bool:
    return any(action != "off" for action in guards.model_dump().values())


def _blocked(found: "GuardrailsOutput") -> AgentFailure:
    injection = found.risk_category == "injection"
    code = "ERR_GUARDRAIL_INJECTION" if injection else "ERR_GUARDRAIL_UNSAFE"
    what = "looks like an attempt to take over the agent" if injection else "holds what this room does not take"
    return AgentFailure(
        agent_id="guardrails",
        error_code=code,
        message=f"the request was blocked: it {what}; {found.reasoning}",
        recoverable=False,
    )
