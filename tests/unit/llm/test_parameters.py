"""What an endpoint's error says of a parameter, and what becomes of the next call."""

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from pydantic import JsonValue

from agent.core.errors import ModelEndpointError, ModelError, ModelRequestError
from agent.core.models import JsonObject
from agent.llm.faults import build_body_error, build_status_error, read_error
from agent.llm.message_roles import arrange_roles
from agent.llm.parameters import ParameterSupport
from agent.llm.port import ModelChunk, ModelRequest, ResponseSchema
from agent.llm.refusals import list_refused_parameters
from agent.llm.schema_derivation import derive_schema
from agent.llm.schema_dialect import OPENAI, SchemaDialect
from agent.llm.wire_form import THOUGHT_TOKENS


def fault(body: Any, status: int = 400) -> ModelError:
    return build_status_error(status, {}, json.dumps(body).encode(), "http://here")


def request(**options: Any) -> ModelRequest:
    user: dict[str, Any] = {"role": "user", "content": "hi"}
    return ModelRequest("m", (user,), "completion", **options)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"error": {"message": "'max_tokens' is not supported", "param": "max_tokens"}}, "max_tokens"),
        ({"error": {"message": "x", "param": "temperature", "code": "unsupported_value"}}, "temperature"),
        ({"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs"}]}, "seed"),
        ([{"error": {"code": 400, "message": 'Unknown name "seed": Cannot find field.'}}], "seed"),
        ({"error": {"message": "`temperature` is deprecated for this model.", "code": "invalid"}}, "temperature"),
        ({"error": {"message": "Unrecognized request argument supplied: 'top_k'"}}, "top_k"),
        ({"error": {"message": "openai does not support parameters: ['seed'], for model=x"}}, "seed"),
        ({"error": {"message": "temperature: must be at most 1", "param": "temperature", "code": "invalid_value"}}, ""),
        ({"error": {"message": "max_tokens is too large: 9000", "param": "max_tokens", "code": "invalid_value"}}, ""),
    ],
)  # fmt: skip
def test_the_refused_parameter_is_read_off_the_error(body: Any, names: str) -> None:
    assert " ".join(list_refused_parameters(fault(body))) == names


def test_an_error_within_an_error_is_told() -> None:
    raw = json.dumps({"message": "Unexpected role", "code": "3230", "param": None})
    error = read_error(json.dumps({"error": {"message": "no", "code": 400, "metadata": {"raw": raw}}}).encode())
    assert (error.message, error.code, error.status) == ("no: Unexpected role", "3230", 400)


def test_an_error_in_a_body_has_the_status_it_names() -> None:
    assert isinstance(build_body_error({"message": "no", "code": 400}, "here"), ModelRequestError)
    assert build_body_error({"message": "no"}, "here").code == "ERR_MODEL_DOWN"


def test_an_unknown_model_is_a_matter_of_the_settings() -> None:
    error = fault({"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}, 404)
    assert isinstance(error, ModelEndpointError)
    assert error.kind.http_status == 502


def test_the_limit_is_sent_under_its_other_name_and_then_not_at_all() -> None:
    support, asked = ParameterSupport(), request(max_tokens=50)
    for name, left in (("max_tokens", {"max_completion_tokens": 50}), ("max_completion_tokens", {})):
        sent = support.build_body(asked, stream=False)
        error = fault({"error": {"message": "no", "param": name, "code": "unsupported_parameter"}})
        assert support.learn(asked, [sent], error)
        body = support.build_body(asked, stream=False)
        assert {key: value for key, value in body.items() if key.startswith("max_")} == left
    assert not support.learn(asked, [body], error), "nothing is left to leave out"


def test_what_is_learnt_holds_for_its_model_alone() -> None:
    support, asked = ParameterSupport(), request(temperature=0.0)
    error = fault({"error": {"message": "no", "param": "temperature", "code": "unsupported_value"}})
    assert support.learn(asked, [support.build_body(asked, stream=False)], error)
    other = ModelRequest("other", asked.messages, "completion", temperature=0.0)
    assert "temperature" not in support.build_body(asked, stream=True)
    assert "temperature" in support.build_body(other, stream=True)


def test_a_callers_own_format_is_not_left_out() -> None:
    schema = ResponseSchema("s", {"type": "object"})
    error = fault({"error": {"message": "response_format json_schema is not supported"}})
    support = ParameterSupport()
    ours, theirs = request(response_schema=schema), request(options={"response_format": {"type": "json_object"}})
    assert not support.learn(theirs, [support.build_body(theirs, stream=False)], error)
    assert support.learn(ours, [support.build_body(ours, stream=False)], error)
    assert "response_format" not in support.build_body(ours, stream=False)


async def test_a_schema_is_derived_once_for_a_call_however_many_chunks_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    derivations: list[SchemaDialect] = []

    def derive(schema: JsonObject, dialect: SchemaDialect) -> tuple[JsonObject, bool]:
        derivations.append(dialect)
        return derive_schema(schema, dialect)

    async def iterate_chunks() -> AsyncGenerator[ModelChunk, None]:
        for number in range(50):
            yield ModelChunk(text=str(number), finish_reason="stop" if number == 49 else None)

    monkeypatch.setattr("agent.llm.parameters.derive_schema", derive)
    properties: JsonObject = {"a": {"type": "string"}, "b": {"type": "string"}}
    schema: JsonObject = {"type": "object", "properties": properties, "required": ["a"], "additionalProperties": False}
    support, asked = ParameterSupport(OPENAI), request(response_schema=ResponseSchema("x", schema))
    support.build_body(asked, stream=True)
    assert len([chunk async for chunk in support.restore_chunks(asked, iterate_chunks())]) == 50
    assert derivations == [OPENAI]
    support.build_body(request(response_schema=ResponseSchema("x", {**schema, "required": []})), stream=True)
    assert derivations == [OPENAI] * 2, "another schema is another one, though it is equal in name"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Trying to keep the first 4571 tokens when context the overflows. However, the model is loaded with "
              "context length of only 4096 tokens, which is not enough."),
        (400, "The input (2417 tokens) is longer than the model's context length (2048 tokens)."),
        (400, "prompt too long; exceeded max context length by 369 tokens"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 417 and 2000"),
        (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 1525"),
        (500, "Context size has been exceeded."),
        (400, "request (2417 tokens) exceeds the available context size (2048 tokens), try increasing it"),
        (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
        (400, "Input is too long for requested model."),
        (400, "Invalid request: Your request exceeded model token limit: 8192"),
    ],
)  # fmt: skip
def test_a_prompt_that_is_too_long_is_known_in_the_words_of_each_server(status: int, message: str) -> None:
    error = fault({"error": {"message": message}}, status)
    assert (error.code, "a shorter request" in error.message) == ("ERR_MODEL_CONTEXT", True)
    in_stream = build_body_error({"message": message}, "here")
    assert (in_stream.code, in_stream.details["reported"]) == ("ERR_MODEL_CONTEXT", message)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "max_tokens is too large: 9000. This model supports at most 4096 completion tokens"),
        (400, "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens"),
        (429, "Request too large for the limit of tokens per minute; context window"),
        (500, "the database schema has no context"),
    ],
)
def test_other_limits_are_not_those_of_the_context(status: int, message: str) -> None:
    assert fault({"error": {"message": message}}, status).code != "ERR_MODEL_CONTEXT"


def test_a_value_that_is_refused_is_left_out_of_our_own_calls_and_told_to_a_caller() -> None:
    error = fault({"error": {"message": "Input validation error: `temperature` must be strictly positive"}}, 422)
    support = ParameterSupport()
    user: JsonObject = {"role": "user", "content": "hi"}
    theirs = request(temperature=0.0)
    ours, warmer = (ModelRequest("m", (user,), "planner", temperature=one) for one in (0.0, 0.7))
    assert not support.learn(theirs, [support.build_body(theirs, stream=False)], error)
    assert support.learn(ours, [support.build_body(ours, stream=False)], error)
    assert "temperature" not in support.build_body(ours, stream=False)
    assert "temperature" in support.build_body(warmer, stream=False), "another value is sent"
    assert "temperature" in support.build_body(theirs, stream=False)


def test_a_word_of_a_message_names_no_parameter() -> None:
    support, asked = ParameterSupport(), request(options={"user": "u1", "seed": 1}, temperature=0.5)
    for message in ("this user is not permitted", "unsupported: either temperature or seed"):
        assert not support.learn(
            asked, [support.build_body(asked, stream=False)], fault({"error": {"message": message}})
        )


def test_a_guess_that_does_not_help_is_taken_back() -> None:
    schema = ResponseSchema("x", {"type": "object", "properties": {}, "required": [], "additionalProperties": False})
    support = ParameterSupport()
    system: JsonObject = {"role": "system", "content": "Be brief."}
    user: JsonObject = {"role": "user", "content": "hi"}
    asked = ModelRequest("m", (system, user), "planner", response_schema=schema, temperature=0.0, max_tokens=9)
    before = support.build_body(asked, stream=False)
    bodies = [before]
    while support.learn(asked, bodies, fault({"error": {"message": "Bad Request"}})):
        bodies.append(support.build_body(asked, stream=False))
    assert 3 < len(bodies) < 7
    assert len({str(body) for body in bodies}) == len(bodies)
    assert support.build_body(asked, stream=False) == before
    assert not support.learn(asked, [before], fault({"error": {"message": "Bad Request"}})), "it is not tried again"
    assert support.learn(asked, [before], fault({"error": {"message": "temperature is not supported"}}))


def test_a_model_that_thinks_gets_room_for_its_thoughts_beside_the_limit_of_the_text() -> None:
    user: JsonObject = {"role": "user", "content": "hi"}
    ours, theirs = (ModelRequest("m", (user,), one, max_tokens=400) for one in ("supervisor", "completion"))
    support = ParameterSupport()
    assert support.get_reply_limit(ours) == 400
    support.confirm(ours, support.build_body(ours, stream=True), thinks=True)
    limit = support.build_body(ours, stream=True)["max_tokens"]
    assert limit == support.get_reply_limit(ours) == 400 + THOUGHT_TOKENS
    assert support.build_body(theirs, stream=True)["max_tokens"] == support.get_reply_limit(theirs) == 400
    reading = ModelRequest("m", (user,), "probe", max_tokens=1)
    assert support.build_body(reading, stream=False)["max_tokens"] == 1, "it only has the prompt read"


def test_a_refusal_in_other_words_must_come_twice_before_anything_is_left_out_for_good() -> None:
    schema = ResponseSchema("x", {"type": "object", "properties": {"a": {"type": "string", "maxLength": 2}},
                                  "required": [], "additionalProperties": False})  # fmt: skip
    support, user = ParameterSupport(), dict[str, JsonValue](role="user", content="hi")
    asked = ModelRequest("m", (user,), "planner", response_schema=schema)
    before = support.build_body(asked, stream=False)
    for is_learnt in (False, True):
        assert support.learn(asked, [before], fault({"error": {"message": "The model has crashed."}}))
        smaller = support.build_body(asked, stream=False)
        assert smaller != before
        support.confirm(asked, smaller, thinks=False)
        assert support.build_body(asked, stream=False) == (smaller if is_learnt else before)


def test_calls_that_are_refused_at_once_try_the_same_form() -> None:
    support, system = ParameterSupport(), dict[str, JsonValue](role="system", content="Be brief.")
    user: JsonObject = {"role": "user", "content": "hi"}
    asked = ModelRequest("m", (system, user), "planner", temperature=0.0)
    sent = support.build_body(asked, stream=True)
    for message in ("Bad Request", "Conversation roles must alternate user/assistant"):
        support = ParameterSupport()
        assert support.learn(asked, [sent], fault({"error": {"message": message}}))
        first = support.build_body(asked, stream=True)
        assert support.learn(asked, [sent], fault({"error": {"message": message}}))
        assert support.build_body(asked, stream=True) == first != sent


OBJECT: JsonObject = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 2}}, "required": [],
                      "additionalProperties": False}  # fmt: skip
SCHEMA = ResponseSchema("x", OBJECT)
SYSTEM: JsonObject = {"role": "system", "content": "Be brief."}
USER: JsonObject = {"role": "user", "content": "hi"}
DECISION = ModelRequest("m", (SYSTEM, USER), "planner", response_schema=SCHEMA, temperature=0.0, max_tokens=900)
ANSWER = ModelRequest("m", (SYSTEM, USER), "completion", temperature=0.5)


def refuse(message: str, status: int = 400) -> ModelError:
    return fault({"error": {"message": message}}, status)


def send(
    support: ParameterSupport, asked: ModelRequest, answer: Callable[[JsonObject], ModelError | None]
) -> list[Any]:
    """The bodies of one call, whose last is the one that was taken, or after which it was given up."""
    bodies: list[JsonObject] = []
    while len(bodies) < 30:
        bodies.append(support.build_body(asked, stream=False))
        error = answer(bodies[-1])
        if error is None:
            support.confirm(asked, bodies[-1], thinks=False)
            break
        if not support.learn(asked, bodies, error):
            break
    return bodies


def has_system(body: JsonObject) -> bool:
    return SYSTEM in list(body["messages"] if isinstance(body["messages"], list) else [])


@pytest.mark.parametrize("rest", ["Bad Request", "", "Expected a boolean.", "Provider returned error"])
@pytest.mark.parametrize("is_roles_first", [True, False])
@pytest.mark.parametrize("taken", ["nothing", "no schema", "no parameters"])
def test_a_call_is_sent_a_few_times_and_never_twice_alike(rest: str, taken: str, *, is_roles_first: bool) -> None:
    def answer(body: JsonObject) -> ModelError | None:
        is_refused = {"nothing": True, "no schema": "response_format" in body, "no parameters": "temperature" in body}
        if has_system(body) and (is_roles_first or not is_refused[taken]):
            return refuse("System role not supported")
        return refuse(rest) if is_refused[taken] else None

    support = ParameterSupport()
    before = support.build_body(DECISION, stream=False)
    bodies = send(support, DECISION, answer)
    assert len(bodies) <= 6
    assert len({str(body) for body in bodies}) == len(bodies)
    assert (answer(bodies[-1]) is None) == (taken != "nothing")
    if taken == "nothing":
        assert support.build_body(DECISION, stream=False) == before


def test_a_limit_that_was_fitted_to_its_prompt_and_is_too_large_is_not_sent_again() -> None:
    def answer(body: JsonObject) -> ModelError | None:
        limit = body.get("max_tokens")
        if isinstance(limit, int) and limit > 5_192:
            return refuse(f"maximum context length is 8192 tokens. You requested {3_000 + limit} tokens (3000 in the "
                          f"messages, {limit} in the completion)")  # fmt: skip
        return refuse("max_tokens must be less than or equal to 4096") if isinstance(limit, int) else None

    support = ParameterSupport()
    asked = ModelRequest("m", (SYSTEM, USER), "planner", max_tokens=7_000)
    assert [body.get("max_tokens") for body in send(support, asked, answer)] == [7_000, 5_192, None]
    longer = ModelRequest("m", (SYSTEM, {**USER, "content": "hi, " * 20}), "planner", max_tokens=7_000)
    assert len(send(support, longer, answer)) == 1, "nor a prompt of another length"


def test_a_guess_is_not_confirmed_by_a_call_that_was_sent_without() -> None:
    support = ParameterSupport()
    other = support.build_body(ANSWER, stream=False)
    for _ in range(2):
        bodies = [support.build_body(ANSWER, stream=False)]
        while support.learn(ANSWER, bodies, refuse(f"Invalid request: image {len(bodies)} could not be decoded")):
            support.confirm(ANSWER, other, thinks=False)
            bodies.append(support.build_body(ANSWER, stream=False))
        assert support.build_body(ANSWER, stream=False) == other


@pytest.mark.parametrize("asked", [ANSWER, DECISION], ids=["answer", "decision"])
@pytest.mark.parametrize("message", ["", "Bad Request", "Invalid request"])
def test_odd_refusals_that_pass_by_themselves_change_nothing(asked: ModelRequest, message: str) -> None:
    support = ParameterSupport()
    before = support.build_body(asked, stream=False)
    for _ in range(3):
        errors = [refuse(message)]
        assert len(send(support, asked, lambda _: errors.pop() if errors else None)) == 2  # noqa: B023
        assert send(support, asked, lambda _: None) == [before]


def test_outages_that_are_apart_cost_no_schema() -> None:
    support = ParameterSupport()
    for _ in range(3):
        for _ in range(2):
            assert "response_format" in send(support, DECISION, lambda _: refuse("Internal Server Error", 500))[0]
        assert "response_format" not in send(support, DECISION, lambda _: None)[0]
        assert "response_format" in send(support, DECISION, lambda _: None)[0]


def test_a_success_of_other_calls_does_not_put_off_what_a_refused_schema_teaches() -> None:
    def answer(body: JsonObject) -> ModelError | None:
        return refuse("Bad Request") if "'x'" in str(body.get("response_format")) else None

    support = ParameterSupport()
    small = ModelRequest("m", (USER,), "supervisor", response_schema=ResponseSchema("y", {"type": "object"}))
    for _ in range(2):
        assert len(send(support, DECISION, answer)) > 1
        assert len(send(support, small, answer)) == 1
    assert len(send(support, DECISION, answer)) == 1


def test_a_refusal_against_which_nothing_helps_is_the_same_with_another_id() -> None:
    support = ParameterSupport()
    message = "Internal error 5{0} at 12:0{0}:07 (request req-a{0}f, 5b1e{0}c9d-77aa-4b0e-a1b2-c3d4e5f6a7b8)"
    assert 1 < len(send(support, DECISION, lambda _: refuse(message.format(1)))) <= 6
    assert len(send(support, DECISION, lambda _: refuse(message.format(2)))) == 1
    assert len(send(support, DECISION, lambda _: refuse("Another error"))) > 1


def test_instructions_and_neighbours_become_one_message_and_calls_stay() -> None:
    picture: JsonValue = {"type": "image_url", "image_url": {"url": "data:,"}}
    call: JsonObject = {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}
    result: JsonObject = {"role": "tool", "tool_call_id": "c", "content": "4"}
    messages: list[JsonValue] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One"},
        {"role": "user", "content": [picture]},
        call,
        {**call, "content": "again"},
        result,
        result,
    ]
    parts: list[JsonValue] = [{"type": "text", "text": "Be brief.\n\nOne"}, picture]
    first: JsonObject = {"role": "user", "content": parts}
    assert arrange_roles(messages, "no_system") == [first, *messages[3:]]
    second: JsonObject = {"role": "user", "content": [{"type": "text", "text": "One"}, picture]}
    assert arrange_roles(messages, "joined") == [messages[0], second, *messages[3:]]
    assert arrange_roles(messages, "as_is") == messages


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."),
        (500, "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."),
        (400, "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40."),
        (400, "Invalid 'messages[2].tool_call_id': string too long. Expected a string with maximum length 40."),
        (400, "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
        (
            400,
            "Value at 'messages.2.toolUseId' failed to satisfy constraint: Member must satisfy a pattern",
        ),
    ],
)
def test_ids_of_calls_that_an_endpoint_refuses_are_sent_in_a_form_that_all_take(status: int, message: str) -> None:
    calls: list[JsonValue] = [{"id": call_id, "type": "function"} for call_id in ("call_1", "aB3456789")]
    conversation: tuple[JsonObject, ...] = (
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_1", "content": "a"},
        {"role": "tool", "tool_call_id": "aB3456789", "content": "b"},
    )
    support, asked = ParameterSupport(), ModelRequest("m", conversation, "completion")
    sent = support.build_body(asked, stream=False)
    assert sent["messages"] == [*conversation]
    assert support.learn(asked, [sent], refuse(message, status))
    written: Any = support.build_body(asked, stream=False)["messages"]
    ids = [call["id"] for call in written[1]["tool_calls"]]
    assert ids == [answer["tool_call_id"] for answer in written[2:]]
    assert ids[1] == "aB3456789"
    assert all(len(one) == 9 and one.isalnum() for one in ids)
    support.confirm(asked, support.build_body(asked, stream=False), thinks=False)
    assert support.build_body(asked, stream=True)["messages"] == written


def test_a_conversation_without_calls_is_not_sent_again_for_its_ids() -> None:
    support, asked = ParameterSupport(), request()
    sent = support.build_body(asked, stream=False)
    assert not support.learn(asked, [sent], refuse("Tool call id was x but must be a-z, with a length of 9."))


@pytest.mark.parametrize(
    ("error", "is_about_streams"),
    [
        ({"message": "Unsupported value", "param": "stream", "code": "unsupported_value"}, True),
        (
            {"message": "Your organization must be verified to stream this model. Please go to: https://a.test/stream"},
            True,
        ),
        ({"message": "Streaming is not supported for this model"}, True),
        ({"message": "This model does not support streaming with tools."}, True),
        ({"message": "streaming isn't enabled here; set `stream` to false"}, True),
        ({"message": "Unsupported parameter: 'stream_options' is not supported when streaming"}, False),
        ({"message": "logprobs are not supported in streaming mode"}, False),
        ({"message": "the upstream at http://a.test/streaming is not supported"}, False),
    ],
)
def test_a_model_that_does_not_stream_is_asked_for_the_whole_reply(
    error: dict[str, Any], *, is_about_streams: bool
) -> None:
    support, asked = ParameterSupport(), request()
    sent = support.build_body(asked, stream=True)
    support.learn(asked, [sent], fault({"error": error}))
    body = support.build_body(asked, stream=True)
    assert ("stream" not in body) is is_about_streams
    assert "stream" in body or "stream_options" not in body
