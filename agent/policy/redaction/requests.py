"""Redacts requests: this gateway's secrets are removed before one is stored, and every text is searched for attacks.

`redact_request` runs before a run exists. `check_prompt` applies the room's policy to the prompt, and `scan_request` to
all that stands beside it: earlier messages, calls, and the caller's own tools.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from agent.core.event_loop import compute_beside_loop
from agent.core.failures import AgentFailure
from agent.core.json_walk import iter_texts
from agent.core.models import AgentRequest, ChatMessage, JsonObject, RoomGuards
from agent.llm.provider_fields import OPAQUE_FIELDS, iter_reasoning_texts, map_reasoning
from agent.policy.redaction.secrets import make_secret_finder

if TYPE_CHECKING:
    from agent.policy.guardrails import GuardrailPipeline, GuardrailsOutput

INLINE_CHARS: Final = 20_000
"""More new characters than these are scanned in a thread: these take about 25 ms."""
MAX_REPORTED: Final = 10
"""How many findings beside the prompt the trace names."""
_PROTOCOL_FIELDS: Final = frozenset(
    {"id", "type", "function", "name", "arguments", "description", "parameters", "properties"}
)
"""Keys of the protocol itself: their values are scanned, they are not."""
_CLASSIFIER_KINDS: Final = frozenset({"attack", "addressed", "request"})
"""The kinds that only the classifier of injections finds, and no rule."""
MAX_CACHED: Final = 20_000
"""How many texts' findings are kept; each takes about 500 bytes."""
_CACHE: "OrderedDict[tuple[RoomGuards, bool, bytes], GuardrailsOutput]" = OrderedDict()
"""The findings of texts, by policy and digest, without the texts: a conversation is sent again with every turn."""
_PIPELINES: dict[RoomGuards, "GuardrailPipeline"] = {}


def redact_request(request: AgentRequest, values: tuple[str, ...]) -> AgentRequest:
    """The request without the secrets in `values`, plain or encoded. Nobody gets them back."""
    if not values:
        return request
    secrets = make_secret_finder(values, "known")
    texts = (request.prompt, *(text for _, text, _ in _iter_texts(request)))
    if not secrets.may_contain_secret("\n".join((*texts, *iter_texts(request.options), *iter_texts(request.metadata)))):
        return request

    def clean(tree: JsonObject) -> JsonObject:
        redacted = secrets.redact_tree(tree)
        return redacted if isinstance(redacted, dict) else tree

    messages = request.messages
    if messages is not None:
        messages = tuple(
            message.model_copy(
                update={
                    "content": secrets.redact(message.content),
                    "tool_calls": tuple(clean(call) for call in message.tool_calls),
                    "provider_fields": map_reasoning(message.provider_fields, secrets.redact),
                    "name": secrets.redact(message.name) if message.name else message.name,
                }
            )
            for message in messages
        )
    return request.model_copy(
        update={
            "prompt": secrets.redact(request.prompt),
            "prompt_name": secrets.redact(request.prompt_name) if request.prompt_name else request.prompt_name,
            "messages": messages,
            "metadata": clean(request.metadata),
            "client_tools": tuple(clean(tool) for tool in request.client_tools),
            "options": clean(request.options),
        }
    )


@dataclass(frozen=True, slots=True)
class CheckedPrompt:
    """A prompt as the rest of the run sees it. `blocked` is why the run ends here."""

    prompt: str
    findings: tuple[str, ...] = ()
    placeholders: dict[str, str] | None = None
    blocked: AgentFailure | None = None


async def check_prompt(prompt: str, guards: RoomGuards) -> CheckedPrompt:
    """The prompt after the room's policy."""
    from agent.policy.guardrails import GuardrailsInput, PlaceholderMap  # noqa: PLC0415 - loaded with the first request

    if not _is_active(guards):
        return CheckedPrompt(prompt)
    # Loading the detectors takes a moment; a thread for every prompt would cost more than the check itself.
    pipeline = _PIPELINES.get(guards)
    if pipeline is None:
        pipeline = await asyncio.to_thread(make_input_guardrails, guards)
    findings = await pipeline.collect_findings(GuardrailsInput(content=prompt, check_type="input_validation"))
    if not findings:
        return CheckedPrompt(prompt)
    placeholders = PlaceholderMap()
    check = await compute_beside_loop(len(prompt), lambda: pipeline.apply_policy(prompt, findings, placeholders))
    if check.action == "block":
        return CheckedPrompt("", (check.reasoning,), blocked=make_blocked_failure(check))
    return CheckedPrompt(check.sanitized_content, (check.reasoning,), placeholders.entries or None)


async def scan_request(request: AgentRequest, guards: RoomGuards) -> "tuple[tuple[str, ...], AgentFailure | None]":
    """The findings outside the prompt, and the reason why the room refuses the request, or None."""
    texts = [text for text in _iter_texts(request) if text.text]
    if not texts:
        return (), None
    policy = _get_policy_beside_prompt(guards)
    if not _is_active(policy):
        return (), None
    new = sum(len(one.text) for one in texts if (policy, one.is_instruction, _digest(one.text)) not in _CACHE)
    scan = asyncio.to_thread(_scan_texts, policy, texts) if new > INLINE_CHARS else None
    outputs = await scan if scan is not None else _scan_texts(policy, texts)
    reported = tuple(f"{where}: {output.reasoning}" for where, output in outputs[:MAX_REPORTED])
    return reported, next((make_blocked_failure(output) for _, output in outputs if output.action == "block"), None)


def redact_history(request: AgentRequest, guards: RoomGuards) -> tuple[ChatMessage, ...]:
    """The messages a client sends along, without the attacks that the room removes."""
    messages = request.messages or ()
    if guards.injection != "redact":
        return messages
    return tuple(
        message.model_copy(
            update={
                "content": _redact_injections(guards, message.content, message.role not in ("user", "tool")),
                "tool_calls": tuple(_redact_tree(guards, call) for call in message.tool_calls),
                "provider_fields": map_reasoning(
                    message.provider_fields, lambda text: _redact_injections(guards, text, orders=True)
                ),
            }
        )
        for message in messages
    )


def redact_client_tools(request: AgentRequest, guards: RoomGuards) -> tuple[JsonObject, ...]:
    """The tools of a client, without the attacks that the room removes."""
    tools = request.client_tools
    return tools if guards.injection != "redact" else tuple(_redact_tree(guards, tool) for tool in tools)


def redact_options(request: AgentRequest, guards: RoomGuards) -> JsonObject:
    """The options of a client, without such attacks: a model reads the descriptions of an answer's schema."""
    options = request.options
    return options if guards.injection != "redact" else _redact_tree(guards, options)


def make_input_guardrails(guards: RoomGuards) -> "GuardrailPipeline":
    """The guardrails of a policy for what comes in."""
    from agent.policy.guardrails import GuardrailPipeline, GuardrailsPolicy  # noqa: PLC0415 - as above

    if guards not in _PIPELINES:
        _PIPELINES[guards] = GuardrailPipeline(GuardrailsPolicy(**guards.model_dump()))
    return _PIPELINES[guards]


def make_blocked_failure(found: "GuardrailsOutput") -> AgentFailure:
    """The reason why a request goes no further."""
    injection = found.risk_category == "injection"
    code = "ERR_GUARDRAIL_INJECTION" if injection else "ERR_GUARDRAIL_UNSAFE"
    what = (
        "looks like an attempt to take over the agent"
        if injection
        else "contains something that this room does not accept"
    )
    return AgentFailure(
        agent_id="guardrails",
        error_code=code,
        message=f"the request was blocked: it {what}; {found.reasoning}",
        recoverable=False,
    )


def _is_active(guards: RoomGuards) -> bool:
    return any(action != "off" for action in vars(guards).values())


def _redact_tree(guards: RoomGuards, tree: JsonObject) -> JsonObject:
    from agent.policy.guardrails.spans import map_json_texts  # noqa: PLC0415 - loaded with the first request

    redacted = map_json_texts(
        tree, lambda text, under: _redact_injections(guards, text, orders=True) if under else text
    )
    return redacted if isinstance(redacted, dict) else tree


def _redact_injections(guards: RoomGuards, text: str, orders: bool) -> str:
    policy = _get_policy_beside_prompt(guards)
    if not text or _scan_cached(policy, text, orders).action != "redact":
        return text
    return _scan_text(policy, text, orders).sanitized_content


def _get_policy_beside_prompt(guards: RoomGuards) -> RoomGuards:
    """The policy for texts beside the prompt: placeholders are put in only when a model is shown the text, and what is
    only reported of a prompt would be reported of its conversation with every turn."""
    fields = {name: getattr(guards, name) for name in ("pii", "secret", "hate_speech", "malicious_code")}
    return guards.model_copy(update={name: "block" if fields[name] == "block" else "off" for name in fields})


class _RequestText(NamedTuple):
    """One text of a request, and its place there."""

    location: str
    text: str
    is_instruction: bool = False
    """Whether the text is there to instruct a model, or comes from one. Such a text reads like an attack and is none:
    what only the classifier finds in it does not count."""


def _iter_texts(request: AgentRequest) -> Iterator[_RequestText]:
    """Yields every text of a request but its prompt."""
    for number, message in enumerate(request.messages or ()):
        yield _RequestText(f"messages[{number}]", message.content, message.role in ("system", "developer", "assistant"))
        if reasoning := "\n".join(iter_reasoning_texts(message.provider_fields)):
            yield _RequestText(f"messages[{number}].reasoning", reasoning, is_instruction=True)
        for call in message.tool_calls:
            read = {key: value for key, value in call.items() if key not in OPAQUE_FIELDS}
            yield _RequestText(f"messages[{number}].tool_calls", "\n".join(iter_texts(read, but=_PROTOCOL_FIELDS)))
    for number, tool in enumerate(request.client_tools):
        yield _RequestText(f"tools[{number}]", "\n".join(iter_texts(tool, but=_PROTOCOL_FIELDS)), is_instruction=True)
    for name, value in request.options.items():
        yield _RequestText(f"options.{name}", "\n".join(iter_texts(value, but=_PROTOCOL_FIELDS)), is_instruction=True)
    for name, value in request.get_caller_metadata().items():
        yield _RequestText(f"metadata.{name}", "\n".join(iter_texts(value, but=_PROTOCOL_FIELDS)))


def _scan_texts(guards: RoomGuards, texts: Sequence[_RequestText]) -> "list[tuple[str, GuardrailsOutput]]":
    looked = ((where, _scan_cached(guards, text, orders)) for where, text, orders in texts)
    return [(where, output) for where, output in looked if not output.is_safe]


def _scan_cached(guards: RoomGuards, text: str, orders: bool) -> "GuardrailsOutput":
    """The findings of a text, without the text."""
    key = (guards, orders, _digest(text))
    cached = _CACHE.get(key)
    if cached is None:
        cached = _scan_text(guards, text, orders).model_copy(update={"sanitized_content": "", "findings": ()})
        _CACHE[key] = cached
        while len(_CACHE) > MAX_CACHED:
            _CACHE.popitem(last=False)
    return cached


def _scan_text(guards: RoomGuards, text: str, orders: bool) -> "GuardrailsOutput":
    from agent.policy.guardrails import GuardrailsInput  # noqa: PLC0415 - loaded with the first request

    guardrails = make_input_guardrails(guards)
    findings = guardrails.run_detectors(GuardrailsInput(content=text, check_type="input_validation"))
    return guardrails.apply_policy(text, [f for f in findings if not (orders and f.kind in _CLASSIFIER_KINDS)], None)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
