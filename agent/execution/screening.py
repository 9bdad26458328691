"""What a caller sends besides the prompt: earlier messages, calls, tools of their own. Every text of it is looked at.

`screened` takes this gateway's own secrets out of a request before it is stored; `check_rest` looks for attacks, and
for what the room refuses, in what stands next to the prompt.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from agent.core.models import AgentRequest, ChatMessage, JsonObject, RoomGuards
from agent.core.trees import texts_of
from agent.execution.run import Run
from agent.execution.shield import guardrails_of, secret_finder

if TYPE_CHECKING:
    from agent.guardrails import GuardrailsOutput

SHORT: Final = 20_000
"""Characters that are looked at here; more of them are looked at in a thread, for they take some 25 ms."""
TOLD: Final = 10
"""Findings of earlier messages that the trace names."""
_WIRE: Final = frozenset({"id", "type", "function", "name", "arguments", "description", "parameters", "properties"})
"""Names of the protocol itself, which say nothing."""
_READS_LIKE: Final = frozenset({"attack", "addressed", "request"})
"""What the classifier of injections finds, where the rules find none."""
KEPT: Final = 20_000
"""Texts whose outcome is remembered, each in some 500 bytes."""
_KNOWN: "OrderedDict[tuple[RoomGuards, bool, bytes], GuardrailsOutput]" = OrderedDict()
"""What was found, by the policy and the text's digest; without the text."""


def screened(request: AgentRequest, values: tuple[str, ...]) -> AgentRequest:
    """The request without the secrets of this gateway's settings, as they are or encoded. Nobody gets them back."""
    if not values:
        return request
    secrets = secret_finder(values, "known")
    texts = (request.prompt, *(text for _, text, _ in _texts(request)))
    if not secrets.suspects("\n".join((*texts, *texts_of(request.options), *texts_of(request.metadata)))):
        return request

    def clean(tree: JsonObject) -> JsonObject:
        found = secrets.redact_tree(tree)
        return found if isinstance(found, dict) else tree

    messages = request.messages
    if messages is not None:
        messages = tuple(
            message.model_copy(
                update={
                    "content": secrets.redact(message.content),
                    "tool_calls": tuple(clean(call) for call in message.tool_calls),
                }
            )
            for message in messages
        )
    return request.model_copy(
        update={
            "prompt": secrets.redact(request.prompt),
            "messages": messages,
            "metadata": clean(request.metadata),
            "client_tools": tuple(clean(tool) for tool in request.client_tools),
            "options": clean(request.options),
        }
    )


async def check_rest(run: Run) -> "tuple[tuple[str, ...], GuardrailsOutput | None]":
    """What is to be told of everything but the prompt, and why the room refuses it; None where it does not.

    A conversation is sent anew with every turn: what was looked at before is remembered by its digest."""
    guards = _next_to_prompt(run.room.guard_input)
    if not any(action != "off" for action in guards.model_dump().values()):
        return (), None
    texts = [found for found in _texts(run.state.request) if found.text]
    new = sum(len(text) for _, text, orders in texts if (guards, orders, _digest(text)) not in _KNOWN)
    long = new > SHORT
    found = await asyncio.to_thread(_all_found, guards, texts) if long else _all_found(guards, texts)
    told = tuple(f"{where}: {output.reasoning}" for where, output in found[:TOLD])
    return told, next((output for _, output in found if output.action == "block"), None)


def messages_for_models(run: Run) -> tuple[ChatMessage, ...]:
    """The messages a client sends along, without the attacks that the room takes out."""
    messages, guards = run.state.request.messages or (), run.room.guard_input
    if guards.injection != "redact":
        return messages
    return tuple(
        message.model_copy(
            update={
                "content": _without_attacks(guards, message.content, message.role not in ("user", "tool")),
                "tool_calls": tuple(_tree_without_attacks(guards, call) for call in message.tool_calls),
            }
        )
        for message in messages
    )


def tools_for_models(run: Run) -> tuple[JsonObject, ...]:
    """The tools of a client, without them too."""
    tools, guards = run.state.request.client_tools, run.room.guard_input
    return tools if guards.injection != "redact" else tuple(_tree_without_attacks(guards, tool) for tool in tools)


def options_for_models(run: Run) -> JsonObject:
    """What a client asks of the answer's form, without them too: the descriptions of a schema are read by a model."""
    options, guards = run.state.request.options, run.room.guard_input
    return options if guards.injection != "redact" else _tree_without_attacks(guards, options)


def _tree_without_attacks(guards: RoomGuards, tree: JsonObject) -> JsonObject:
    from agent.guardrails.spans import mapped  # noqa: PLC0415 - loaded with the first request

    found = mapped(tree, lambda text, under: _without_attacks(guards, text, orders=True) if under else text)
    return found if isinstance(found, dict) else tree


def _without_attacks(guards: RoomGuards, text: str, orders: bool) -> str:
    policy = _next_to_prompt(guards)
    if not text or _looked(policy, text, orders).action != "redact":
        return text
    return _look(policy, text, orders).sanitized_content


def _next_to_prompt(guards: RoomGuards) -> RoomGuards:
    """The policy of these texts: what is replaced by placeholders is so when they are shown to a model."""
    kept = {name: getattr(guards, name) for name in ("pii", "secret")}
    return guards.model_copy(update={name: "block" if kept[name] == "block" else "off" for name in kept})


class _Text(NamedTuple):
    """One text of a request, and where it stands."""

    where: str
    text: str
    orders: bool = False
    """Whether it is there to tell a model what to do, or is what one said: it reads like an attack then, and is none.
    What is an attack in any place is found all the same."""


def _texts(request: AgentRequest) -> Iterator[_Text]:
    """Every text but the prompt."""
    for number, message in enumerate(request.messages or ()):
        yield _Text(f"messages[{number}]", message.content, message.role in ("system", "developer", "assistant"))
        for call in message.tool_calls:
            yield _Text(f"messages[{number}].tool_calls", "\n".join(texts_of(call, but=_WIRE)))
    for number, tool in enumerate(request.client_tools):
        yield _Text(f"tools[{number}]", "\n".join(texts_of(tool, but=_WIRE)), orders=True)
    for name, value in request.options.items():
        yield _Text(f"options.{name}", "\n".join(texts_of(value, but=_WIRE)), orders=True)
    for name, value in request.caller_metadata().items():
        yield _Text(f"metadata.{name}", "\n".join(texts_of(value, but=_WIRE)))


def _all_found(guards: RoomGuards, texts: Sequence[_Text]) -> "list[tuple[str, GuardrailsOutput]]":
    looked = ((where, _looked(guards, text, orders)) for where, text, orders in texts)
    return [(where, output) for where, output in looked if not output.is_safe]


def _looked(guards: RoomGuards, text: str, orders: bool) -> "GuardrailsOutput":
    """What was found in a text, now or before; without the text."""
    key = (guards, orders, _digest(text))
    known = _KNOWN.get(key)
    if known is None:
        known = _look(guards, text, orders).model_copy(update={"sanitized_content": "", "findings": ()})
        _KNOWN[key] = known
        while len(_KNOWN) > KEPT:
            _KNOWN.popitem(last=False)
    return known


def _look(guards: RoomGuards, text: str, orders: bool) -> "GuardrailsOutput":
    from agent.guardrails import GuardrailsInput  # noqa: PLC0415 - loaded with the first request

    guardrails = guardrails_of(guards)
    found = guardrails.find(GuardrailsInput(content=text, check_type="input_validation"))
    return guardrails.decide(text, [f for f in found if not (orders and f.kind in _READS_LIKE)], None)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
