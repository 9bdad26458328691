"""The answer as a person may read it: checked by the room's policy, placeholders restored, links made harmless.

A stream gives the same text however it is cut. What cannot be found in pieces (personal data, words of hate) is looked
for in rooms that show their answers whole.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

from agent.core.errors import UnsafeAnswerError
from agent.core.events import AnswerFinished, OutputGuarded, ToolReturned
from agent.core.failures import AgentFailure
from agent.core.models import AnswerPiiAction, JsonObject, OutputGuards, Uncertainty
from agent.core.run_state import RunState
from agent.policy.guardrails.run_links import make_link_filter
from agent.policy.redaction.inbound import get_placeholders, get_placeholders_for_people
from agent.policy.redaction.secrets import make_secret_finder

if TYPE_CHECKING:
    from agent.policy.guardrails import GuardrailPipeline, GuardrailsOutput, SecretScanner

_REMOVED_PERSONAL = re.compile(r"\[removed: (EMAIL|IBAN|CARD|ID|IP|PHONE)\]")
"""What stands for the kinds of `agent.policy.guardrails.pii`, which is loaded with the first request."""


class StreamFilter(Protocol):
    """A filter over a text that comes in pieces."""

    def feed(self, piece: str) -> str:
        """The text that is certain after one more piece."""
        ...

    def end(self, piece: str = "") -> str:
        """Adds the last piece and returns the rest."""
        ...


class ChainedFilter:
    """Several filters, one after the other."""

    def __init__(self, stages: Sequence[StreamFilter]) -> None:
        self._stages = stages

    def feed(self, piece: str) -> str:
        """The text that is certain after one more piece."""
        for stage in self._stages:
            piece = stage.feed(piece)
        return piece

    def end(self, piece: str = "") -> str:
        """Adds the last piece and returns the rest: of each filter, through those behind it."""
        for stage in self._stages:
            piece = stage.end(piece)
        return piece


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """An answer after the room's policy: what may be shown, and the event about what was found."""

    text: str
    event: OutputGuarded | None = None

    @property
    def failure(self) -> AgentFailure | None:
        """Why nothing of it may be shown."""
        return self.event.failure if self.event is not None else None


async def check_answer(
    text: str, state: RunState, secrets: tuple[str, ...], *, is_redacted: bool = False
) -> CheckedAnswer:
    """A whole answer after the room's policy. Its placeholders are still in place.

    `is_redacted` is whether the text was searched already for the secrets and the personal data that its room removes,
    and held none.
    """
    findings = await _find_in_answer(text, state, secrets, is_redacted=is_redacted)
    if findings.is_safe:
        return CheckedAnswer(findings.sanitized_content)
    failure = None
    if findings.action == "block":
        failure = UnsafeAnswerError(_describe_refusal(findings), agent_id="guardrails").to_failure()
    action = findings.action if findings.action != "pass" else "flag"
    event = OutputGuarded(action=action, findings=(findings.reasoning,), failure=failure)
    return CheckedAnswer(findings.sanitized_content, event)


def release_answer(
    answer: AnswerFinished, text: str, state: RunState, secrets: tuple[str, ...], stored_texts: Mapping[str, str]
) -> AnswerFinished:
    """The answer as it leaves the gateway; `text` is its text after the room's policy. `stored_texts`: see
    `make_link_filter`.
    """
    tailored = answer.tailored
    if tailored is not None:
        content = text
        if tailored.content != answer.text:
            content = make_answer_secret_finder(state.room.guard_output, secrets).redact(tailored.content)
        tailored = tailored.model_copy(update={"content": _restore(content, state, stored_texts)})
    calls = tuple(_restore_call(call, state) for call in answer.tool_calls)
    released = _restore(text, state, stored_texts)
    uncertainties = (*answer.uncertainties, *_explain_removal(released, state))
    return answer.change(text=released, tailored=tailored, tool_calls=calls, uncertainties=uncertainties)


class AnswerFilters:
    """Makes the filters for the streams of one answer: its text, and the reasoning behind it."""

    def __init__(self, state: RunState, secrets: tuple[str, ...], stored_texts: Mapping[str, str]) -> None:
        self._secrets = make_answer_secret_finder(state.room.guard_output, secrets)
        self._own_text = collect_caller_text(state) if get_answer_pii(state) == "redact_answer" else None
        self._placeholders = get_placeholders_for_people(state)
        self._links = make_link_filter(state, stored_texts, self._placeholders)

    def create(self) -> StreamFilter:
        """A filter for one stream."""
        stages: list[StreamFilter] = [self._secrets.create_stream()]
        if self._own_text is not None:
            stages.append(_create_pii_stream(self._own_text))
        if self._placeholders is not None:
            stages.append(self._placeholders.create_stream_restorer())
        if self._links is not None:  # the last: nothing is put into an address that was looked at before
            stages.append(self._links.create_stream())
        return ChainedFilter(stages)


def remove_personal_data(text: str, own_text: str) -> str:
    """The text without personal data, except what `own_text` contains."""
    from agent.policy.guardrails.pii import find_personal_data  # noqa: PLC0415 - loaded with the first request
    from agent.policy.guardrails.spans import replace_spans  # noqa: PLC0415 - as above

    spans = [(span.start, span.end, f"[removed: {kind}]") for kind, span in find_personal_data(text)]
    return replace_spans(text, [span for span in spans if text[span[0] : span[1]] not in own_text])


def _create_pii_stream(own_text: str) -> StreamFilter:
    from agent.policy.guardrails.stream import PersonalDataStream  # noqa: PLC0415 - loaded with the first request

    return PersonalDataStream(own_text)


def make_answer_secret_finder(guards: OutputGuards, secrets: tuple[str, ...]) -> "SecretScanner":
    """The finder of what an answer may not hold: this gateway's secrets and, unless the room leaves them in,
    what looks like or is called a credential."""
    return make_secret_finder(secrets, "all" if guards.redacts_secrets else "known")


def collect_caller_text(state: RunState) -> str:
    """The caller's own text: what they wrote, what is remembered for them, and what trusted tools returned.
    Their own data may be repeated to them.
    """
    prompts = state.own_prompts if state.has_outside_prompt else (state.request.prompt,)
    written = (*prompts, *(message.content for message in state.request.messages or ()))
    recalled = state.retrieval
    # Where answers may hold what the caller alone reads, an earlier answer may be repeated too.
    roles = ("user", "assistant") if state.room.guard_output.pii == "auto" else ("user",)
    own_texts = (
        [message.content for message in recalled.history if message.role in roles] if recalled is not None else []
    )
    items = [item.text for item in recalled.items if not item.tainted] if recalled is not None else []
    results = [call.result.text for call in state.list_calls() if call.result is not None and not call.result.tainted]
    return "\n".join((*written, *own_texts, *items, *results))


def _explain_removal(text: str, state: RunState) -> list[Uncertainty]:
    """Which personal data an answer lacks, and what leaves it in: a published contact is not told apart."""
    kinds = sorted(set(_REMOVED_PERSONAL.findall(text)))
    if not kinds or get_answer_pii(state) not in ("redact", "redact_answer"):
        return []
    message = (
        f"personal data of others was removed from the answer ({', '.join(kinds)}); to leave it in, for example a "
        "contact that your documents publish, set `guard_output: {pii: flag}` in the room's file, or "
        "AGENT_GUARD_ANSWER_PII=flag for all rooms whose files say nothing"
    )
    return [Uncertainty(level="info", message=message)]


def _restore(text: str, state: RunState, stored_texts: Mapping[str, str]) -> str:
    placeholders = get_placeholders_for_people(state)
    text = placeholders.restore(text) if placeholders is not None else text
    links = make_link_filter(state, stored_texts, placeholders)
    return links.sanitize(text) if links is not None else text


def _restore_call(call: JsonObject, state: RunState) -> JsonObject:
    """The call of a client's tool with the values in its arguments, which are JSON inside JSON."""
    placeholders = get_placeholders(state)
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if placeholders is None or not isinstance(function, dict) or not isinstance(arguments, str):
        return call
    # The value goes between the quotes of a JSON text, so it is escaped as one.
    escaped = {sign: json.dumps(value, ensure_ascii=False)[1:-1] for sign, value in placeholders.entries.items()}
    return {**call, "function": {**function, "arguments": type(placeholders)(escaped).restore(arguments)}}


async def _find_in_answer(
    text: str, state: RunState, secrets: tuple[str, ...], *, is_redacted: bool
) -> "GuardrailsOutput":
    from agent.policy.guardrails import GuardrailsInput  # noqa: PLC0415 - loaded with the first request

    guards = state.room.guard_output.model_copy(update={"pii": get_answer_pii(state)})
    if not guards.redacts_secrets:
        text = make_secret_finder(secrets, "known").redact(text)
    removes_all = guards.redacts_secrets and guards.pii != "flag"  # what is only flagged was not searched for
    known_clean = is_redacted and removes_all
    pipeline = make_output_guardrails(guards, None if known_clean else make_secret_finder(secrets, "all"))
    findings = await pipeline.collect_findings(GuardrailsInput(content=text, check_type="output_safety"))
    own = collect_caller_text(state) if any(finding.category == "pii" for finding in findings) else ""
    reported = [
        finding for finding in findings if finding.category != "pii" or text[finding.start : finding.end] not in own
    ]
    return pipeline.apply_policy(text, reported, None)


@cache
def make_output_guardrails(guards: OutputGuards, secrets: "SecretScanner | None") -> "GuardrailPipeline":
    """The guardrails of a policy for what goes out; `secrets` finds what looks like a credential. Without it,
    they look for harm only."""
    from agent.policy.guardrails import GuardrailPipeline, GuardrailsPolicy  # noqa: PLC0415 - as above
    from agent.policy.guardrails.harm import HarmDetector  # noqa: PLC0415 - as above
    from agent.policy.guardrails.pii import PiiDetector  # noqa: PLC0415 - as above

    actions = guards.model_dump() | ({"pii": "redact"} if guards.pii in ("auto", "redact_answer") else {})
    policy = GuardrailsPolicy(injection="off", **actions)
    detectors = (HarmDetector(),) if secrets is None else (HarmDetector(), secrets, PiiDetector())
    return GuardrailPipeline(policy, detectors=detectors)


def _describe_refusal(found: "GuardrailsOutput") -> str:
    kinds = ", ".join(sorted({f"{finding.category} ({finding.kind})" for finding in found.findings}))
    return f"the answer was withheld: it contains {kinds}, which this room does not allow"


FROM_ARGUMENTS = "arguments"
"""`ToolReturned.read_from` of a result that is made of nothing but its arguments."""


def get_answer_pii(state: RunState) -> AnswerPiiAction:
    """What the room does with personal data in an answer, with `auto` decided."""
    action = state.room.guard_output.pii
    if action != "auto":
        return action
    return "off" if has_read_only_own(state) else "redact_answer"


def has_read_only_own(state: RunState) -> bool:
    """Whether the run has read documents, and all that it read belongs to the caller alone.

    Results of trusted tools do not count: they are the caller's own data, which may be repeated anyway. A result of an
    earlier run, whose calls are not in this log, may be of anything.
    """
    read = [result.read_from for result in _iter_untrusted_results(state)]
    memories = state.retrieval.items if state.retrieval is not None else ()
    if any(item.tainted for item in memories):
        read.append(("memories",))
    if not any(source != FROM_ARGUMENTS for sources in read for source in sources):
        return False
    own = {*state.unshared, FROM_ARGUMENTS}
    is_taken = any(one.taken_from and one.output is not None and one.output.tainted for one in state.list_attempts())
    return not is_taken and all(sources and own.issuperset(sources) for sources in read)


def _iter_untrusted_results(state: RunState) -> Iterator[ToolReturned]:
    """Yields the results with untrusted text, also those of skills and sub-agents."""
    return (call.result for call in state.list_calls() if call.result is not None and call.result.tainted)
