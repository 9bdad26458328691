"""Endpoints that refuse a part of the request in their own words, over the door: each answer is right all the same, and
what was learnt is not asked for again.
"""

import json
from collections.abc import Callable

import pytest

from tests.integration.conftest import Serve
from tests.integration.test_odd_endpoints import ask, refuse_schemas
from tests.support.odd_endpoint import RESULT, Body, OddEndpoint, Refuse, get_schema

ANSWERED = (200, f"Anna pays {RESULT} EUR.", "succeeded")


def count_refused(odd: OddEndpoint) -> int:
    return sum(odd.refuse(body) is not None for body in odd.bodies)


def count_tokens(body: Body) -> int:
    return len(json.dumps(body["messages"])) // 4


def reserve(message: str, context: int) -> Refuse:
    """A refusal of prompts that, with the limit of the reply, exceed the context."""

    def refuse(body: Body) -> tuple[int, str] | None:
        prompt, limit = count_tokens(body), body.get("max_tokens", 0)
        words = message.format(context=context, prompt=prompt, limit=limit, total=prompt + limit)
        return (400, words) if prompt + limit > context else None

    return refuse


@pytest.mark.parametrize("context", [2_048, 4_000])
@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is {context} tokens. However, you requested {total} tokens ({prompt} in "
        "the messages, {limit} in the completion). Please reduce the length of the messages or completion.",
        "'max_tokens' or 'max_completion_tokens' is too large: {limit}. This model's maximum context length is "
        "{context} tokens and your request has {prompt} input tokens ({limit} > {context} - {prompt}).",
        "Requested token count exceeds the model's maximum context length of {context} tokens. You requested a total "
        "of {total} tokens: {prompt} tokens from the input messages and {limit} tokens for the completion.",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {context}. Given: {prompt} `inputs` "
        "tokens and {limit} `max_new_tokens`",
        "the request is longer than the context window",
    ],
    ids=["vllm", "new vllm", "sglang", "tgi", "without figures"],
)
async def test_the_limit_of_a_reply_leaves_room_for_the_prompt(serve: Serve, message: str, context: int) -> None:
    odd = OddEndpoint(refuse=reserve(message, context))
    assert await ask(serve, odd) == ANSWERED
    assert 1 <= count_refused(odd) <= 4
    limits = [body.get("max_tokens") for body in odd.bodies if get_schema(body) is not None and not odd.refuse(body)]
    assert limits
    assert all(limits) == ("{limit}" in message), "what is left, where the endpoint says how much that is"


async def test_a_prompt_that_is_too_long_by_itself_is_not_sent_again(serve: Serve) -> None:
    words = "request ({} tokens) exceeds the available context size (600 tokens), try increasing it"
    odd = OddEndpoint(refuse=lambda body: (400, words.format(count)) if (count := count_tokens(body)) > 600 else None)
    outcome = await ask(serve, odd)
    assert "or start the model with a larger context" in outcome.text
    messages = [json.dumps(body["messages"]) for body in odd.bodies]
    assert len(messages) == len(set(messages))


def has_system(body: Body) -> bool:
    return any(message["role"] == "system" for message in body["messages"])


def has_no_turns(body: Body) -> bool:
    """Whether user and assistant do not take turns, after a system message if there is one."""
    roles = [message["role"] for message in body["messages"]]
    turns = roles[1:] if roles[0] == "system" else roles
    return any(role != ("user", "assistant")[place % 2] for place, role in enumerate(turns))


TEMPLATES: dict[str, tuple[Callable[[Body], bool], int, str]] = {
    "gemma on vllm": (lambda body: has_system(body) or has_no_turns(body), 400, "System role not supported"),
    "gemma on llama.cpp": (
        lambda body: has_system(body) or has_no_turns(body),
        500,
        "Jinja Exception: System role not supported at row 1, column 67",
    ),
    "mistral on vllm": (
        lambda body: has_system(body) or has_no_turns(body),
        400,
        "Conversation roles must alternate user/assistant/user/assistant/...",
    ),
    "mistral on lm studio": (
        lambda body: has_system(body) or has_no_turns(body),
        400,
        "Error rendering prompt with jinja template: Only user and assistant roles are supported!",
    ),
    "system, then turns": (
        has_no_turns,
        400,
        "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
    ),
    "gemma, hosted": (has_system, 400, "Developer instruction is not enabled for models/gemma-3-4b-it"),
    "without a word": (lambda body: has_system(body) or has_no_turns(body), 400, ""),
}


@pytest.mark.parametrize("name", TEMPLATES)
async def test_a_template_without_a_system_role_or_with_strict_turns_is_served(serve: Serve, name: str) -> None:
    is_refused, status, message = TEMPLATES[name]
    odd = OddEndpoint(refuse=lambda body: (status, message) if is_refused(body) else None)
    # Two messages of the user in a row, as clients send them whose reply was broken off.
    history = [{"role": role, "content": text} for role, text in (("user", "Hello?"), ("user", "Are you there?"))]
    assert await ask(serve, odd, history=history) == ANSWERED
    assert count_refused(odd) <= (5 if message else 8), "a guess must help twice"
    assert "Are you there?" in json.dumps(odd.bodies[-1]["messages"])


@pytest.mark.parametrize("profile", ["small", "auto"])
@pytest.mark.parametrize("is_all", [True, False])
async def test_a_template_without_a_system_role_that_refuses_more_ends(
    serve: Serve, profile: str, *, is_all: bool
) -> None:
    odd = OddEndpoint()

    def refuse(body: Body) -> tuple[int, str] | None:
        if len(odd.bodies) > 200:
            return None  # for a gateway that would never end
        if has_system(body):
            return 400, "System role not supported"
        return (400, "Expected a boolean.") if is_all or get_schema(body) is not None else None

    odd.refuse = refuse
    outcome = await ask(serve, odd, model_profile=profile)
    assert (outcome == ANSWERED) != is_all
    assert len(odd.bodies) < 40


def refuse_parameter(name: str, message: str) -> Refuse:
    return lambda body: (400, message) if name in body else None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("stream_options", "Unrecognized request argument supplied: stream_options"),
        ("temperature", "litellm.UnsupportedParamsError: openai does not support parameters: ['temperature']"),
        ("temperature", "gpt-5 models don't support temperature=0.0. Only temperature=1 is supported."),
        ("temperature", "This model does not support the temperature parameter."),
        ("max_tokens", "max_tokens: Extra inputs are not permitted"),
        ("max_tokens", "Argument not supported on this model: max_tokens"),
        ("temperature", "Input validation error: `temperature` must be strictly positive"),
        ("temperature", ""),
        ("stream_options", ""),
        ("response_format", "Response format is not supported"),
        ("response_format", ""),
        ("response_format", "Failed to initialize samplers: std::exception"),
        ("temperature", "the request was not understood"),
    ],
)
async def test_a_refused_parameter_is_learnt_in_any_words(serve: Serve, name: str, message: str) -> None:
    odd = OddEndpoint(refuse=refuse_parameter(name, message))
    assert await ask(serve, odd) == ANSWERED
    assert count_refused(odd) <= (4 if name == "response_format" or "understood" not in message else 8)
    assert any(get_schema(body) is not None for body in odd.bodies) or name == "response_format"
    assert name not in odd.bodies[-1]


async def test_a_server_that_fails_over_each_schema_is_asked_without(serve: Serve) -> None:
    odd = OddEndpoint(refuse=lambda body: (500, "Internal Server Error") if get_schema(body) is not None else None)
    assert await ask(serve, odd) == ANSWERED
    assert count_refused(odd) == 4, "twice two failures, and never again"


async def test_a_short_outage_costs_no_schema(serve: Serve) -> None:
    odd = OddEndpoint()
    failing = refuse_schemas(lambda _: sum(one is not None for one in odd.schemas) <= 2, "Internal Server Error", 500)
    odd.refuse = failing
    assert await ask(serve, odd) == ANSWERED
    assert sum(one is not None for one in odd.schemas) > 2
