"""Endpoints that ignore, refuse or are slow with schemas, and models that loop, think or stay silent, over the door.

Each request ends in the right answer, or in a sentence that says what to do.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from aiohttp import web
from pydantic import ValidationError

from agent.core.settings import Settings
from agent.execution.planner_call import DECISION_TOKENS
from tests.integration.conftest import Serve
from tests.support.odd_endpoint import CALL, MADE_UP, QUESTION, RESULT, Body, OddEndpoint, get_schema, serve_odd

FROM_MEMORY = "The model answered this from memory, without any tool. Please check it."
ROOM = "id: sums\ndescription: Sums.\ntools: [calculator, current_time]\n"


class Outcome(NamedTuple):
    """What a user gets: the status of HTTP, the text, and the status of the run."""

    code: int
    text: str
    run: str


async def ask(
    serve: Serve,
    odd: OddEndpoint,
    *,
    question: str = QUESTION,
    room: str = "stepgate",
    history: Sequence[Body] = (),
    **options: Any,
) -> Outcome:
    options = {"llm_timeout_s": 20.0, "model_profile": "small", **options}
    async with (
        serve_odd(odd) as endpoint,
        serve(None, llm_base_url=endpoint.url, model_fast="odd", **options) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        body = {"model": room, "messages": [*history, {"role": "user", "content": question}]}
        reply = await client.post("/v1/chat/completions", json=body)
        runs = (await client.get("/v1/runs")).json()["data"]
    whole = reply.json()
    text = whole["choices"][0]["message"]["content"] if reply.is_success else whole["error"]["message"]
    return Outcome(reply.status_code, text, runs[0]["status"])


def refuse_schemas(is_refused: Callable[[Any], bool], message: str, status: int = 400) -> Any:
    """A refusal of each request whose schema is one of these."""

    def refuse(body: Body) -> tuple[int, str] | None:
        schema = get_schema(body)
        return (status, message) if schema is not None and is_refused(schema) else None

    return refuse


def holds(keyword: str) -> Callable[[Any], bool]:
    return lambda schema: f'"{keyword}"' in json.dumps(schema)


def has_optional(schema: Any) -> bool:
    """Whether an object has a property that is not required."""
    if isinstance(schema, dict):
        is_open = schema.get("type") == "object" and {*schema.get("required", [])} != schema["properties"].keys()
        return is_open or any(map(has_optional, schema.values()))
    return isinstance(schema, list) and any(map(has_optional, schema))


def count_values(schema: Any) -> int:
    if isinstance(schema, dict):
        values = schema.get("enum")
        return (len(values) if isinstance(values, list) else 0) + sum(map(count_values, schema.values()))
    return sum(map(count_values, schema)) if isinstance(schema, list) else 0


REFUSALS = {
    "anyOf": (refuse_schemas(holds("anyOf"), "anyOf is not supported"), True),
    "maxLength": (refuse_schemas(holds("maxLength"), "In context=('todo'), 'maxLength' is not permitted"), True),
    "optional": (
        refuse_schemas(
            has_optional, "Invalid schema for response_format 'decision': 'required' is required to be supplied"
        ),
        True,
    ),
    "const": (refuse_schemas(holds("const"), "const is not supported"), True),
    "closing": (refuse_schemas(holds("additionalProperties"), 'Unknown name "additionalProperties"'), True),
    "large": (refuse_schemas(lambda one: len(json.dumps(one)) > 2_000, "The compiled grammar is too large"), True),
    "all": (refuse_schemas(lambda _: True, "response_format json_schema is not supported"), False),
    "all, as a fault": (refuse_schemas(lambda _: True, "invalid JSON schema in format", 500), False),
    "all, unexplained": (refuse_schemas(lambda _: True, "Request contains an invalid argument."), False),
}


@pytest.mark.parametrize("profile", ["small", "auto"])
@pytest.mark.parametrize("name", REFUSALS)
async def test_what_is_refused_of_a_schema_costs_no_tool(serve: Serve, name: str, profile: str) -> None:
    refuse, keeps_schema = REFUSALS[name]
    odd = OddEndpoint(refuse=refuse)
    assert await ask(serve, odd, model_profile=profile) == (200, f"Anna pays {RESULT} EUR.", "succeeded")
    decided = [get_schema(body) for body in odd.bodies if '"todo"' in json.dumps(get_schema(body))]
    assert bool(decided and refuse(odd.bodies[odd.schemas.index(decided[-1])]) is None) == keeps_schema


async def test_more_values_than_an_endpoint_takes_become_texts(serve: Serve, tmp_path: Path) -> None:
    odd = OddEndpoint(refuse=refuse_schemas(lambda one: count_values(one) > 100, "enum: more than 100 values"))
    assert (await ask(serve, odd)).text == f"Anna pays {RESULT} EUR."
    assert max(map(count_values, odd.schemas)) <= 100


@pytest.mark.parametrize("room", ["stepgate", "sums"])
@pytest.mark.parametrize(
    "write",
    [
        lambda one: f"Sure!\n```json\n{json.dumps(one)}\n```",
        lambda one: f"<think>Let {{me}} see: [17.5] * 240?</think>\n{json.dumps(one)}",
        lambda one: f"Here it is: {json.dumps(one)} I hope this helps.",
    ],
    ids=["fenced", "thinks", "talks"],
)
async def test_a_schema_that_is_ignored_costs_no_tool(
    serve: Serve, tmp_path: Path, write: Callable[[Any], str], room: str
) -> None:
    (tmp_path / "sums.yaml").write_text(ROOM)
    outcome = await ask(serve, OddEndpoint(ignores_schema=True, write=write), room=room, rooms_dir=tmp_path)
    assert outcome == (200, f"Anna pays {RESULT} EUR.", "succeeded")


@pytest.mark.parametrize(
    ("reply", "finish", "reason"),
    [
        ("", "stop", "the reply is empty"),
        ("<think>hmm, 17.5", "stop", "the reply ended before its thinking did"),
        ('{"next": {"todo": ["' + "the sum of the sum " * 500, "length", "the reply was cut off before its end"),
        ("17,5 mal 240 ist 4500.", "stop", "the model did not say whether one is needed"),
    ],
    ids=["empty", "thinks", "loops", "german"],
)
async def test_an_answer_without_a_decision_says_that_it_is_from_memory(
    serve: Serve, reply: str, finish: str, reason: str
) -> None:
    outcome = await ask(serve, OddEndpoint(ignores_schema=True, write=lambda _: reply, finish=finish))
    assert outcome.text.startswith(f"Anna pays {MADE_UP} EUR.\n\n{FROM_MEMORY} (No tool was used, because ")
    assert reason in outcome.text
    assert (outcome.code, outcome.run) == (200, "partial")


async def test_small_talk_of_such_a_model_needs_no_sentence(serve: Serve) -> None:
    odd = OddEndpoint(ignores_schema=True, write=lambda _: "A good morning to you!", answer="A good morning to you!")
    assert await ask(serve, odd, question="Good morning, dear friend!") == (200, "A good morning to you!", "succeeded")


async def test_a_model_that_says_nothing_is_named(serve: Serve) -> None:
    outcome = await ask(serve, OddEndpoint(ignores_schema=True, write=lambda _: "", answer=""))
    assert (outcome.code, outcome.run) == (200, "partial")
    assert "the model returned an empty reply; ask again, or with another model" in outcome.text


async def test_an_answer_that_loops_is_cut_and_says_so(serve: Serve) -> None:
    outcome = await ask(serve, OddEndpoint(answer="The sum of the sums is the sum of all. " * 400))
    assert "The model repeated itself, so the answer ends here. Ask again in other words" in outcome.text
    assert outcome.text.count("The sum of the sums") < 5
    assert outcome.run == "partial"


async def test_a_grammar_that_takes_long_to_compile_is_waited_for(serve: Serve) -> None:
    odd = OddEndpoint(compile_s=1.5)
    assert (await ask(serve, odd, llm_timeout_s=1.0)).text == f"Anna pays {RESULT} EUR."
    assert len(odd.bodies) <= 8, "each schema is asked for at most twice"


async def test_a_context_of_2048_tokens_is_enough_for_a_tool(serve: Serve) -> None:
    assert (await ask(serve, OddEndpoint(context=2048))).text == f"Anna pays {RESULT} EUR."


async def test_a_context_that_is_too_small_for_tools_says_what_would_help(serve: Serve) -> None:
    outcome = await ask(serve, OddEndpoint(context=600))
    assert FROM_MEMORY in outcome.text
    assert "or start the model with a larger context" in outcome.text
    assert outcome.run == "partial"


async def test_a_request_that_is_too_long_says_what_would_help(serve: Serve) -> None:
    outcome = await ask(
        serve, OddEndpoint(context=2048), question="Summarize this: " + "The committee met again. " * 400
    )
    assert outcome.code == 400
    assert "send a shorter request, or start the model with a larger context" in outcome.text


async def test_a_conversation_that_outgrows_the_context_is_shortened(serve: Serve) -> None:
    turns = [{"role": role, "content": f"{role} " * 80} for _ in range(9) for role in ("user", "assistant")]
    odd = OddEndpoint(context=2048)
    assert await ask(serve, odd, history=turns) == (200, f"Anna pays {RESULT} EUR.", "succeeded")
    written = odd.bodies[-1]["messages"]
    assert 2 < len(written) < len(turns), "as many of the newest messages as fit"


async def test_a_decision_may_take_longer_than_the_limit_while_it_comes(serve: Serve) -> None:
    odd = OddEndpoint(piece_s=0.4)
    assert (await ask(serve, odd, llm_timeout_s=1.0)).text == f"Anna pays {RESULT} EUR."
    assert len(json.dumps(odd.reply(odd.bodies[1], "planner"))) > 3 * 40, "it is written for longer than a second"


@pytest.mark.parametrize("word", ["Nothing.", "<think>Is it a greeting? It is.</think>\n\nnothing"])
async def test_a_word_counts_whatever_is_around_it(serve: Serve, word: str) -> None:
    odd = OddEndpoint(write=lambda one: word if one == "lookup" else json.dumps(one), answer="Hello!")
    assert (await ask(serve, odd, question="Tell me about love")).text == "Hello!"
    assert len(odd.bodies) == 2, "the question, and the answer"


async def test_an_essay_in_place_of_a_word_is_cut(serve: Serve) -> None:
    essay = "Well, that depends on a great many things. " * 50
    odd = OddEndpoint(write=lambda one: essay if one == "lookup" else json.dumps(one), piece_s=0.01)
    assert (await ask(serve, odd)).text == f"Anna pays {RESULT} EUR."
    assert odd.pieces[0] < 10


async def test_thoughts_take_nothing_of_what_a_decision_may_hold(serve: Serve) -> None:
    odd = OddEndpoint(thoughts="hmm " * 2_500)
    assert await ask(serve, odd) == (200, f"Anna pays {RESULT} EUR.", "succeeded")
    limits = [body["max_tokens"] for body in odd.bodies if "max_tokens" in body]
    assert limits[0] == DECISION_TOKENS < limits[1], "the first reply was cut, and shows that the model thinks"


async def test_further_fields_of_an_endpoint_are_sent_with_every_request(serve: Serve) -> None:
    fields = {"chat_template_kwargs": {"enable_thinking": False}, "top_k": 20}
    odd = OddEndpoint()
    assert await ask(serve, odd, llm_extra_body=fields) == (200, f"Anna pays {RESULT} EUR.", "succeeded")
    assert len(odd.bodies) > 2
    assert all(fields.items() <= body.items() for body in odd.bodies)


def test_fields_that_the_gateway_writes_itself_are_refused() -> None:
    with pytest.raises(ValidationError, match="messages, stream: these fields are the gateway's own; leave them out"):
        Settings(llm_extra_body={"stream": False, "messages": []})


@pytest.mark.parametrize(("reported", "is_told"), [(1_100, True), (6_000, False), (9, False)])
async def test_a_prompt_that_the_server_cuts_without_a_word_is_told(
    serve: Serve, reported: int, *, is_told: bool
) -> None:
    options = {"llm_timeout_s": 20.0, "model_profile": "small", "model_fast": "odd"}
    odd = OddEndpoint(prompt_tokens=reported)
    async with (
        serve_odd(odd) as endpoint,
        serve(None, llm_base_url=endpoint.url, **options) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        prompt = f"{'The committee met again on this day. ' * 600} {QUESTION}"
        reply = await client.post("/v1/agent", json={"prompt": prompt})
    doubts = [one["message"] for one in reply.json()["metadata"]["uncertainties"]]
    assert any("OLLAMA_CONTEXT_LENGTH" in one and "left out about" in one for one in doubts) == is_told, doubts


class RefusingCalls(OddEndpoint):
    """Refuses a reply that calls a tool, because the request offers none, and says what the model wrote (Groq)."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """See `OddEndpoint.handle`."""
        body = await request.json() if request.can_read_body else {}
        written = self.reply(body, request.headers.get("x-stepgate-purpose", "")) if body else ""
        if '"calls"' not in written:
            return await super().handle(request)
        call = {"name": CALL["tool"], "arguments": CALL["inputs"]}
        error = {
            "message": "Tool choice is none, but model called a tool",
            "type": "invalid_request_error",
            "code": "tool_use_failed",
            "failed_generation": json.dumps(call),
        }
        return web.json_response({"error": error}, status=400)


@pytest.mark.parametrize("profile", ["small", "auto"])
async def test_a_call_that_the_provider_refuses_to_pass_on_is_made(serve: Serve, profile: str) -> None:
    assert await ask(serve, RefusingCalls(), model_profile=profile) == (200, f"Anna pays {RESULT} EUR.", "succeeded")
