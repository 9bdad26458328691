"""What providers refuse of a chat completion, by their documentation and their published error bodies."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Refusal:
    """The status and body of an answer that is no completion."""

    body: Any
    status: int = 400


Rules = Callable[[Body], Refusal | None]

_CALL_ID = re.compile(r"[a-zA-Z0-9]{9}")


def openai(message: str, param: str | None, code: str | None) -> Refusal:
    """OpenAI's error body."""
    return Refusal({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})


def tool_pairs(body: Body) -> Refusal | None:
    """OpenAI: every call has its result right behind it, and no result stands without its call."""
    open_calls: set[str] = set()
    for index, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_calls:
                told = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with"
                return openai(f"{told} 'tool_calls'.", f"messages.[{index}].role", None)
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            told = "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            return openai(f"{told} 'tool_call_id'.", f"messages.[{index}].role", None)
        open_calls = {call["id"] for call in message.get("tool_calls") or ()}
        if any(len(one) > 40 for one in open_calls):
            param = f"messages[{index}].tool_calls[0].id"
            return openai(f"Invalid '{param}': string too long.", param, "string_above_max_length")
    return None


def gpt_4(body: Body) -> Refusal | None:
    """A model of OpenAI that takes every parameter."""
    if "max_tokens" in body and "max_completion_tokens" in body:
        return openai("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", None, None)
    return tool_pairs(body)


def gpt_5(body: Body) -> Refusal | None:
    """A reasoning model of OpenAI: parameters are looked at one after the other."""
    if "max_tokens" in body:
        told = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
        return openai(f"{told} instead.", "max_tokens", "unsupported_parameter")
    if body.get("temperature", 1) != 1:
        told = f"Unsupported value: 'temperature' does not support {body['temperature']} with this model. Only the"
        return openai(f"{told} default (1) value is supported.", "temperature", "unsupported_value")
    for name in ("top_p", "presence_penalty", "frequency_penalty", "stop"):
        if name in body:  # some models send the code null
            told = f"Unsupported parameter: '{name}' is not supported with this model."
            return openai(told, name, None)
    return tool_pairs(body)


_MISTRAL = frozenset({
    "model", "messages", "temperature", "top_p", "max_tokens", "stream", "stop", "random_seed", "response_format",
    "tools", "tool_choice", "parallel_tool_calls", "presence_penalty", "frequency_penalty", "n", "prediction",
    "safe_prompt", "reasoning_effort", "metadata",
})  # fmt: skip
_FOLLOWERS: Mapping[str, frozenset[str]] = {
    "system": frozenset({"system", "user"}),
    "user": frozenset({"assistant"}),
    "assistant": frozenset({"user"}),
    "call": frozenset({"tool"}),
    "tool": frozenset({"tool", "assistant"}),
}
"""Which role may follow which; `call` is an assistant message with tool calls."""


def _mistral(message: str, kind: str = "invalid_request_message_order", code: str | None = "3230") -> Refusal:
    return Refusal({"object": "error", "message": message, "type": kind, "param": None, "code": code})


def mistral(body: Body) -> Refusal | None:
    """Mistral: unknown fields are a 422, roles have an order, ids of calls nine letters and digits."""
    return _unknown_to_mistral(body) or _calls_of_mistral(body) or _order_of_mistral(body)


def _unknown_to_mistral(body: Body) -> Refusal | None:
    unknown: list[list[Any]] = [["body", name] for name in body if name not in _MISTRAL]
    known = {"role", "content", "name", "tool_calls", "tool_call_id", "prefix"}
    for index, message in enumerate(body["messages"]):
        unknown += [["body", "messages", index, message["role"], name] for name in message if name not in known]
    problems = [{"type": "extra_forbidden", "loc": one, "msg": "Extra inputs are not permitted"} for one in unknown]
    body = {"object": "error", "message": {"detail": problems}, "type": "invalid_request_error"}
    return Refusal(body, 422) if problems else None


def _calls_of_mistral(body: Body) -> Refusal | None:
    ids = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
    bad = [one for one in ids if not _CALL_ID.fullmatch(one)]
    told = "Tool call id was {} but must be a-z, A-Z, 0-9, with a length of 9."
    return _mistral(told.format(bad[0]), "invalid_function_call", "3280") if bad else None


def _order_of_mistral(body: Body) -> Refusal | None:
    before, missing = "", 0
    for message in body["messages"]:
        role = message["role"]
        if missing > 0 and role != "tool":
            return _mistral("Not the same number of function calls and responses")
        if before and role not in _FOLLOWERS[before]:
            return _mistral(f"Unexpected role '{role}' after role '{before}'")
        missing = missing - 1 if role == "tool" else len(message.get("tool_calls") or ())
        before = "call" if message.get("tool_calls") else role
    if missing:
        return _mistral("Not the same number of function calls and responses")
    if before == "assistant" and not body["messages"][-1].get("prefix"):
        return _mistral("Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant")
    return None


def gemini(body: Body) -> Refusal | None:
    """Gemini's compatibility endpoint: the first call of each turn since the question carries its signature back."""
    messages = body["messages"]
    asked = max((i for i, message in enumerate(messages) if message["role"] == "user"), default=0)
    for message in messages[asked:]:
        for call in (message.get("tool_calls") or ())[:1]:
            extra = call.get("extra_content") or {}
            if extra.get("google", {}).get("thought_signature") != "c2lnbmF0dXJl":
                told = f"Function call is missing a thought_signature in functionCall parts: {call['function']['name']}"
                return Refusal([{"error": {"code": 400, "message": told, "status": "INVALID_ARGUMENT"}}])
    if "seed" in body:
        told = 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'
        return Refusal([{"error": {"code": 400, "message": told, "status": "INVALID_ARGUMENT"}}])
    return None


def anthropic(body: Body) -> Refusal | None:
    """Anthropic's compatibility endpoint, with a model that takes one parameter of sampling at most."""
    if "temperature" in body and "top_p" in body:
        told = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        return Refusal({"error": {"code": "invalid_request_error", "message": told, "type": "invalid_request_error"}})
    for index, message in enumerate(body["messages"]):
        parts = message.get("content")
        if isinstance(parts, list) and any(part.get("type") == "text" and not part["text"] for part in parts):
            told = f"messages.{index}: text content blocks must be non-empty"
            return Refusal(
                {"error": {"code": "invalid_request_error", "message": told, "type": "invalid_request_error"}}
            )
    return tool_pairs(body)


def deepseek(body: Body) -> Refusal | None:
    """A thinking model of DeepSeek: within a loop of tools its reasoning must come back."""
    messages = body["messages"]
    asked = max((i for i, message in enumerate(messages) if message["role"] == "user"), default=0)
    for message in messages[asked:]:
        if message.get("tool_calls") and not message.get("reasoning_content"):
            told = "Missing `reasoning_content` field in the assistant message"
            return openai(told, None, "invalid_request_error")
    return tool_pairs(body)


def groq(body: Body) -> Refusal | None:
    """Groq sends `reasoning` and refuses to get it back."""
    for index, message in enumerate(body["messages"]):
        if "reasoning" in message:
            told = f"'messages.{index}' : for 'role:assistant' the following must be satisfied[('messages.{index}' :"
            return Refusal({"error": {"message": f"{told} property 'reasoning' is unsupported)]", "type": "x"}})
    return tool_pairs(body)


def openrouter(rules: Rules) -> Rules:
    """OpenRouter in front of another provider, whose error it passes on as text."""

    def wrapped(body: Body) -> Refusal | None:
        refusal = rules(body)
        if refusal is None:
            return None
        metadata = {"raw": json.dumps(refusal.body), "provider_name": "Upstream"}
        error = {"message": "Provider returned error", "code": refusal.status, "metadata": metadata}
        return Refusal({"error": error, "user_id": "u"}, refusal.status)

    return wrapped


def ollama(body: Body) -> Refusal | None:
    """Ollama, with a model that was not made for tools."""
    if body.get("tools"):
        told = f"registry.ollama.ai/library/{body['model']} does not support tools"
        return Refusal({"error": {"message": told, "type": "api_error", "param": None, "code": None}})
    return None


def vllm(body: Body) -> Refusal | None:
    """vLLM: a prompt longer than the context and its own shape of errors."""
    if not body["messages"]:
        return Refusal({"object": "error", "message": "messages is empty", "type": "BadRequestError", "code": 400})
    if body.get("temperature", 0) < 0:
        told = "temperature must be non-negative"
        return Refusal({"object": "error", "message": told, "type": "BadRequestError", "param": "temperature"})
    return None
