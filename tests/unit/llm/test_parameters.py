"""What an endpoint's error says of a parameter, and what becomes of the next call."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from agent.core.errors import ModelEndpointError, ModelError, ModelRequestError
from agent.core.models import JsonObject
from agent.llm.faults import build_body_error, build_status_error, list_refused_parameters, read_error
from agent.llm.parameters import ParameterSupport
from agent.llm.port import ModelChunk, ModelRequest, ResponseSchema
from agent.llm.schema_derivation import derive_schema
from agent.llm.schema_dialect import OPENAI, SchemaDialect


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
        assert support.learn(asked, sent, error)
        body = support.build_body(asked, stream=False)
        assert {key: value for key, value in body.items() if key.startswith("max_")} == left
    assert not support.learn(asked, body, error), "nothing is left to leave out"


def test_what_is_learnt_holds_for_its_model_alone() -> None:
    support, asked = ParameterSupport(), request(temperature=0.0)
    error = fault({"error": {"message": "no", "param": "temperature", "code": "unsupported_value"}})
    assert support.learn(asked, support.build_body(asked, stream=False), error)
    other = ModelRequest("other", asked.messages, "completion", temperature=0.0)
    assert "temperature" not in support.build_body(asked, stream=True)
    assert "temperature" in support.build_body(other, stream=True)


def test_a_callers_own_format_is_not_left_out() -> None:
    schema = ResponseSchema("s", {"type": "object"})
    error = fault({"error": {"message": "response_format json_schema is not supported"}})
    support = ParameterSupport()
    ours, theirs = request(response_schema=schema), request(options={"response_format": {"type": "json_object"}})
    assert not support.learn(theirs, support.build_body(theirs, stream=False), error)
    assert support.learn(ours, support.build_body(ours, stream=False), error)
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
