"""What a run may let out: its answer, whole or streamed, and what its tools returned, by the policy of its room.

Secrets of this gateway's settings never leave, whatever the room says. Once the run has read text from outside, no
image is loaded and no link carries that text away. The filters give the same text however a stream is cut; what they
cannot find in pieces (personal data, words of hate) is looked for in rooms that show their answers whole.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

from pydantic import JsonValue

from agent.core.content import left_out, with_bytes, without_bytes
from agent.core.errors import AgentFailure, UnsafeAnswerError
from agent.core.events import Draft, OutputGuarded, StepOutput
from agent.core.fold import RunState
from agent.core.models import JsonObject, OutputGuards, PlanStep, Source
from agent.execution.run import Run
from agent.execution.shield import configured_secrets, secrets_of, vault_for_people, vault_of

if TYPE_CHECKING:
    from agent.guardrails import Guardrails, GuardrailsOutput, Links, Secrets

OUTSIDE_CHARS = 200_000
"""How much of what was read is held against the links of an answer."""
PIECE_CHARS, LONGEST_KEY = 50_000, 10_000
"""Bytes are looked through in such pieces, each with the beginning of the next, where a secret may go on."""


class Stream(Protocol):
    """A filter over a text that comes in pieces."""

    def feed(self, piece: str) -> str:
        """What can be said for certain after one more piece."""
        ...

    def end(self) -> str:
        """The rest."""
        ...


class Outgoing:
    """What an answer passes on its way out of one run."""

    def __init__(self, run: Run) -> None:
        self._vault = vault_for_people(run.state)
        self._of_tools = vault_of(run.state)
        self._secrets = secrets_of(run)
        self._links = _links(run.state)

    def text(self, text: str) -> str:
        """A whole answer."""
        return self.shown(self._secrets.redact(text))

    def shown(self, text: str) -> str:
        """A whole answer whose secrets are out already, as a person reads it."""
        if self._links is not None:
            text = self._links.defuse(text)
        return self._vault.restore(text) if self._vault is not None else text

    def calls(self, calls: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
        """The calls of a client's own tools, whose arguments are JSON within JSON."""
        return tuple(self._call(call) for call in calls) if self._of_tools is not None else calls

    def _call(self, call: JsonObject) -> JsonObject:
        function = call.get("function")
        told = function.get("arguments") if isinstance(function, dict) else None
        if self._of_tools is None or not isinstance(function, dict) or not isinstance(told, str):
            return call
        # The value goes between the quotes of a JSON text: it may hold some itself.
        spelt = {sign: json.dumps(value, ensure_ascii=False)[1:-1] for sign, value in self._of_tools.entries.items()}
        return {**call, "function": {**function, "arguments": type(self._of_tools)(spelt).restore(told)}}

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


@dataclass(frozen=True, slots=True)
class Released:
    """An answer by the room's policy: what may be shown of it, and what is to be told of what was found."""

    text: str
    told: OutputGuarded | None = None

    @property
    def failure(self) -> AgentFailure | None:
        """Why nothing of it may be shown."""
        return self.told.failure if self.told is not None else None


async def released(run: Run, text: str) -> Released:
    """A whole answer, as it was written: with its placeholders still in place."""
    found = await _found(run, text)
    if found.is_safe:
        return Released(found.sanitized_content)
    failure = UnsafeAnswerError(_why(found), agent_id="guardrails").failure() if found.action == "block" else None
    action = found.action if found.action != "pass" else "flag"
    return Released(found.sanitized_content, OutputGuarded(action=action, findings=(found.reasoning,), failure=failure))


async def released_step(run: Run, step: PlanStep, attempt: int, output: StepOutput) -> tuple[list[Draft], StepOutput]:
    """What a model wrote for a step, without secrets; what the room refuses ends the attempt as unsafe, so that it is
    written once more, under a stricter instruction. And what is to be told of it."""
    if step.action not in ("completion", "skill") or output.error_code is not None:
        return [], output
    if not run.room.guard_output.whole or not answers(run.state, step):
        clean = Cleaner(run, secrets_of(run))
        return [], _with_text(output, clean.text(output.text))
    answer = await released(run, output.text)
    if answer.told is None:
        return [], _with_text(output, answer.text)
    if answer.failure is None:
        return [Draft(answer.told, step.id, attempt)], _with_text(output, answer.text)
    return refused(answer.told, step, attempt, output)


def refused(told: OutputGuarded, step: PlanStep, attempt: int, output: StepOutput) -> tuple[list[Draft], StepOutput]:
    """The end of an attempt whose words the room refuses: unsafe, and what is told of it."""
    failure = told.failure
    unsafe = StepOutput(
        error_code=failure.error_code if failure else UnsafeAnswerError.code,
        error=failure.message if failure else "",
        tainted=output.tainted,
    )
    strict = told.model_copy(update={"action": "retry_strict"}) if attempt == 1 else told
    return [Draft(strict, step.id, attempt)], unsafe


@dataclass(frozen=True, slots=True)
class Returned:
    """What a tool returned, as the run and everybody who follows it may see it."""

    text: str
    value: JsonValue
    sources: tuple[Source, ...]


async def released_result(run: Run, text: str, value: JsonValue, sources: tuple[Source, ...]) -> Returned:
    """A tool's result without secrets and, where the room keeps it from its answers, without personal data. What
    cannot be written as JSON comes back as it is: whoever called looks at that."""
    try:
        encoded = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        return Returned(text, value, sources)
    clean = Cleaner(run)
    seen = "\n".join(
        (text, encoded, *(part for source in sources for part in (source.name, source.url or "", *source.quotes)))
    )
    if not clean.suspects(seen):
        return Returned(text, value, sources)
    return await asyncio.to_thread(clean.result, text, value, sources)


async def released_content(run: Run, blocks: Sequence[JsonObject]) -> list[JsonObject]:
    """A tool's content blocks, their words as `released_result` lets them out. Of bytes it is only known whether they
    hold a secret of this gateway, plain or encoded: then the block stays here."""
    bare, parts = without_bytes(blocks)
    words: JsonValue = [*bare]
    clean = (await released_result(run, "", words, ())).value
    kept = [block for block in clean if isinstance(block, dict)] if isinstance(clean, list) else []
    whole = with_bytes(kept, parts)
    if not run.engine.settings.secret_values():
        return whole
    secrets = configured_secrets(run, "known")
    telling = await asyncio.to_thread(lambda: [_holds(secrets, part) for part in parts])
    why = "it holds a secret of this gateway"
    return [left_out(block, why) if tells else block for block, tells in zip(whole, telling, strict=True)]


def _holds(secrets: "Secrets", data: str) -> bool:
    """Whether bytes hold a secret; looked through in pieces, so that others get their turn."""
    places = range(0, len(data), PIECE_CHARS)
    return any(secrets.suspects(data[at : at + PIECE_CHARS + LONGEST_KEY]) for at in places)


def released_line(run: Run, line: str) -> str:
    """A short text of a tool, as `released_result` would let it out."""
    return Cleaner(run).text(line)


def without_secrets(run: Run, text: str) -> str:
    """A message about a failure, without this gateway's secrets and what looks like one."""
    return configured_secrets(run, "forms").redact(text)


class Cleaner:
    """Takes out of a text what this room lets out of none: of results, and of what models write besides the answer."""

    def __init__(self, run: Run, secrets: "Secrets | None" = None) -> None:
        guards = run.room.guard_output
        forms = guards.secret in ("redact", "block")
        self._secrets = secrets or configured_secrets(run, "forms" if forms else "known")
        self._personal = guards.pii in ("redact", "block")
        self._own = _own(run.state) if self._personal else ""

    def suspects(self, text: str) -> bool:
        """Whether there may be anything to take out; False is certain."""
        return self._personal or self._secrets.suspects(text)

    def result(self, text: str, value: JsonValue, sources: tuple[Source, ...]) -> Returned:
        """A tool's result without it."""
        from agent.guardrails.spans import mapped  # noqa: PLC0415 - loaded with the first request

        kept = tuple(
            source.model_copy(
                update={
                    "name": self.text(source.name),
                    "url": self.text(source.url) if source.url is not None else None,
                    "quotes": tuple(self.text(quote) for quote in source.quotes),
                }
            )
            for source in sources
        )
        return Returned(self.text(text), mapped(value, lambda part, _: self.text(part)), kept)

    def text(self, text: str) -> str:
        """The text without it."""
        text = self._secrets.redact(text)
        if not self._personal:
            return text
        from agent.guardrails.pii import personal  # noqa: PLC0415 - as above
        from agent.guardrails.spans import replaced  # noqa: PLC0415 - as above

        found = [(span.start, span.end, f"[removed: {kind}]") for kind, span in personal(text)]
        return replaced(text, [span for span in found if text[span[0] : span[1]] not in self._own])


async def _found(run: Run, text: str) -> "GuardrailsOutput":
    from agent.guardrails import GuardrailsInput  # noqa: PLC0415 - loaded with the first request

    guards = run.room.guard_output
    if guards.secret in ("off", "flag"):
        text = configured_secrets(run, "known").redact(text)
    guardrails = _policy(
        guards, secrets_of(run) if guards.secret in ("redact", "block") else configured_secrets(run, "all")
    )
    found = await guardrails.look(GuardrailsInput(content=text, check_type="output_safety"))
    own = _own(run.state) if any(finding.category == "pii" for finding in found) else ""
    kept = [finding for finding in found if finding.category != "pii" or text[finding.start : finding.end] not in own]
    return guardrails.decide(text, kept, None)


@cache
def _policy(guards: OutputGuards, secrets: "Secrets") -> "Guardrails":
    from agent.guardrails import Guardrails, GuardrailsPolicy  # noqa: PLC0415 - as above
    from agent.guardrails.harm import HarmDetector  # noqa: PLC0415 - as above
    from agent.guardrails.pii import PiiDetector  # noqa: PLC0415 - as above

    policy = GuardrailsPolicy(injection="off", **guards.model_dump())
    return Guardrails(policy, detectors=(HarmDetector(), secrets, PiiDetector()))


def _own(state: RunState) -> str:
    """What the caller wrote themselves: it may be said to them."""
    return "\n".join((state.request.prompt, *(message.content for message in state.request.messages or ())))


def answers(state: RunState, step: PlanStep) -> bool:
    """Whether what this step says is the answer, or a part of it, as it stands."""
    return step.is_completion or not any(
        step.id in other.depends_on for other in (state.plan.steps if state.plan else ())
    )


def _with_text(output: StepOutput, text: str) -> StepOutput:
    """The output with another text, wherever it stands in it."""
    if text == output.text:
        return output
    value: JsonValue = {**output.value, "text": text} if isinstance(output.value, dict) else text
    tailored = output.tailored.model_copy(update={"content": text}) if output.tailored is not None else None
    return output.model_copy(update={"text": text, "value": value, "tailored": tailored})


def _why(found: "GuardrailsOutput") -> str:
    kinds = ", ".join(sorted({f"{finding.category} ({finding.kind})" for finding in found.findings}))
    return f"the answer was kept back: it holds what this room does not let out: {kinds}"


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
