"""What of a request models see: its prompt by the policy of its room, and what was said before.

What the room takes out (personal data, credentials) gets a placeholder; tools get the value back, the person what is
personal. The way out is
`release.py`.
"""

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import JsonValue

from agent.core.errors import AgentFailure
from agent.core.fold import RunState
from agent.core.llm.port import ModelReply
from agent.core.models import ChatMessage, JsonObject, RoomGuards
from agent.execution.run import Run

if TYPE_CHECKING:
    from agent.guardrails import Guardrails, GuardrailsOutput, Secrets, Vault
    from agent.guardrails.models import Finding
    from agent.guardrails.secrets import Look

CREDENTIAL = "CREDENTIAL"
"""What placeholders of credentials are called, whosever they are."""
REMEMBERED_CHARS = 4_000
"""What was found in messages up to this length is kept for the next turn."""
SECRET_CHARS = 8
_WORD = re.compile(r"[A-Za-z-]{1,12}")
"""Shorter settings, and plain words, are no secrets worth the name: local servers are given `none` or `lm-studio`."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A prompt as the rest of the run sees it; `blocked` is why it sees none."""

    prompt: str
    findings: tuple[str, ...] = ()
    placeholders: dict[str, str] | None = None
    blocked: AgentFailure | None = None


async def check_prompt(run: Run, prompt: str) -> Checked:
    """The prompt by the room's policy."""
    from agent.guardrails import GuardrailsInput, Vault  # noqa: PLC0415 - loaded with the first request

    if not _looks(run.room.guard_input):
        return Checked(prompt)
    guards = run.room.guard_input
    # Loading them takes a moment, which others need not wait for; a thread for every prompt would cost more than it.
    guardrails = _GUARDRAILS.get(guards)
    if guardrails is None:
        guardrails = await asyncio.to_thread(guardrails_of, guards)
    vault = Vault()
    found = await guardrails.check(GuardrailsInput(content=prompt, check_type="input_validation"), vault)
    findings = () if found.is_safe else (found.reasoning,)
    if found.action == "block":
        return Checked("", findings, blocked=blocked_by(found))
    return Checked(found.sanitized_content, findings, vault.entries or None)


class Redactor:
    """Takes personal data and credentials out of what was said before, where the room does so with prompts. Its
    placeholders go on where the prompt's end, and are the run's from then on: `placeholders` belongs into the log with
    the texts. This gateway's own secrets get none: they are gone."""

    def __init__(self, run: Run) -> None:
        guards = run.room.guard_input
        self._kinds = tuple(name for name in ("pii", "secret") if getattr(guards, name) == "redact")
        self._own = configured_secrets(run, "known")
        self._given = vault_of(run.state)
        self._vault = self._given

    @property
    def placeholders(self) -> dict[str, str]:
        """Those that were not given out before."""
        known = self._given.entries if self._given is not None else {}
        entries = self._vault.entries if self._vault is not None else {}
        return {sign: value for sign, value in entries.items() if sign not in known}

    async def messages(self, messages: Iterable[ChatMessage]) -> tuple[ChatMessage, ...]:
        """The messages, with their calls of a client's own tools."""
        return tuple([await self._message(message) for message in messages])

    async def text(self, text: str) -> str:
        """One text."""
        from agent.guardrails import Vault  # noqa: PLC0415 - loaded with the first request

        text = self._own.redact(text)
        if not self._kinds or not text:
            return text
        if self._vault is None or self._vault is self._given:
            self._vault = Vault(self._given.entries if self._given is not None else {})
        if self._vault.entries:
            text = self._vault.disarm(text)
        if len(text) > REMEMBERED_CHARS:
            found = await asyncio.to_thread(_private.__wrapped__, text, self._kinds)
        else:
            found = _private(text, self._kinds)
        return self._vault.redact(text, found)

    async def learn(self, tools: Iterable[JsonObject]) -> None:
        """Give placeholders to what stands in the tools of a client: `for_models` puts them there."""
        from agent.guardrails.spans import mapped  # noqa: PLC0415 - loaded with the first request

        texts: list[str] = []

        def seen(text: str, _: str) -> str:
            texts.append(text)
            return text

        for tool in tools:
            mapped(tool, seen)
        for text in texts:
            await self.text(text)

    async def _message(self, message: ChatMessage) -> ChatMessage:
        calls = []
        for call in message.tool_calls:
            function = call.get("function")
            told = function.get("arguments") if isinstance(function, dict) else None
            if isinstance(function, dict) and isinstance(told, str):
                call = {**call, "function": {**function, "arguments": await self.text(told)}}  # noqa: PLW2901
            calls.append(call)
        return message.model_copy(update={"content": await self.text(message.content), "tool_calls": tuple(calls)})


def for_models(run: Run, messages: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    """The messages to a model, or the tools it may call. What was taken out of the prompt reaches it by no other way
    either: not by a tool's result, a document or a memory that holds the same. Nor does a secret of this gateway."""
    vault, own = vault_of(run.state), configured_secrets(run, "known")
    if vault is None and not run.engine.settings.secret_values():
        return messages

    def hidden(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            value = own.redact(value) if own.suspects(value) else value
            return vault.hide(value) if vault is not None else value
        if isinstance(value, list):
            return [hidden(item) for item in value]
        if isinstance(value, dict):  # pictures are no text
            return {key: item if key == "image_url" else hidden(item) for key, item in value.items()}
        return value

    return tuple({key: hidden(value) for key, value in message.items()} for message in messages)


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


def restored(state: RunState, text: str) -> str:
    """A text as the person wrote or reads it: for what is kept for them. Credentials are not."""
    vault = vault_for_people(state)
    return vault.restore(text) if vault is not None else text


def without_values(state: RunState, text: str) -> str:
    """A text for a memory that goes beyond this run: it says that there was an address, not which."""
    vault = vault_of(state)
    return vault.faceless(vault.hide(text)) if vault is not None else text


def vault_of(state: RunState) -> "Vault | None":
    """The placeholders of a run, of its prompt and of what was said before; None where there are none."""
    given = dict(state.guarded.placeholders) if state.guarded is not None else {}
    if state.retrieved is not None:
        given |= state.retrieved.placeholders
    if not given:
        return None
    from agent.guardrails import Vault  # noqa: PLC0415 - loaded with the first request

    return Vault(given)


def vault_for_people(state: RunState) -> "Vault | None":
    """The same for what people read and what is kept for them: only tools get a credential back."""
    vault = vault_of(state)
    if vault is None or not any(sign.startswith(CREDENTIAL) for sign in vault.entries):
        return vault
    gone = {s: f"[removed: {CREDENTIAL}]" if s.startswith(CREDENTIAL) else v for s, v in vault.entries.items()}
    return type(vault)(gone)


def secrets_of(run: Run) -> "Secrets":
    """What finds the credentials that an answer of this run may not hold: every secret of this gateway's settings, and
    what looks like or is called one, unless the room leaves that in."""
    return configured_secrets(run, "all" if run.room.guard_output.secret in ("redact", "block") else "known")


def without_own_secrets(run: Run, reply: ModelReply) -> ModelReply:
    """A model's reply without this gateway's secrets: it becomes plans, arguments and verdicts, which people see."""
    own = configured_secrets(run, "known")
    if not any(own.suspects(text) for text in (reply.text, reply.reasoning, *(c.arguments for c in reply.tool_calls))):
        return reply
    calls = tuple(replace(call, arguments=own.redact(call.arguments)) for call in reply.tool_calls)
    return replace(reply, text=own.redact(reply.text), reasoning=own.redact(reply.reasoning), tool_calls=calls)


def configured_secrets(run: Run, look: "Look") -> "Secrets":
    """What finds this gateway's own secrets, as they are and encoded, and further ones by `look`."""
    return secret_finder(run.engine.settings.secret_values(), look)


@lru_cache(maxsize=1024)
def _private(text: str, kinds: tuple[str, ...]) -> "tuple[Finding, ...]":
    """The personal data and credentials of a message: every later turn of its conversation asks again."""
    from agent.guardrails.models import GuardrailsInput  # noqa: PLC0415 - as above
    from agent.guardrails.sentinel import private  # noqa: PLC0415 - as above

    policy = RoomGuards(**{name: "redact" if name in kinds else "off" for name in ("pii", "secret")})
    found = guardrails_of(policy).find(GuardrailsInput(content=text, check_type="input_validation"))
    return tuple(private(found))


_GUARDRAILS: dict[RoomGuards, "Guardrails"] = {}


def guardrails_of(guards: RoomGuards) -> "Guardrails":
    """The guardrails of a policy for what comes in."""
    from agent.guardrails import Guardrails, GuardrailsPolicy  # noqa: PLC0415 - as above

    return _GUARDRAILS.setdefault(guards, Guardrails(GuardrailsPolicy(**guards.model_dump())))


@cache
def secret_finder(values: tuple[str, ...], look: "Look") -> "Secrets":
    """What finds these settings' secrets, the passwords within addresses among them, and further ones by `look`."""
    from agent.guardrails import Secrets  # noqa: PLC0415 - as above

    found = {part for value in values for part in (value, _password(value))}
    return Secrets([part for part in found if len(part) >= SECRET_CHARS and not _WORD.fullmatch(part)], look)


def _password(value: str) -> str:
    """The password within an address; empty for anything else."""
    try:
        return (urlsplit(value).password or "") if "://" in value else ""
    except ValueError:
        return ""


def _looks(guards: RoomGuards) -> bool:
    return any(action != "off" for action in guards.model_dump().values())


def blocked_by(found: "GuardrailsOutput") -> AgentFailure:
    """Why a request goes no further."""
    injection = found.risk_category == "injection"
    code = "ERR_GUARDRAIL_INJECTION" if injection else "ERR_GUARDRAIL_UNSAFE"
    what = "looks like an attempt to take over the agent" if injection else "holds what this room does not take"
    return AgentFailure(
        agent_id="guardrails",
        error_code=code,
        message=f"the request was blocked: it {what}; {found.reasoning}",
        recoverable=False,
    )
