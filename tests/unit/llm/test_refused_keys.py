"""A refused key and refused content are told apart by the status and the body of an endpoint's error together."""

import json

import pytest

from agent.core.errors import ModelAuthError, ModelError, ModelRequestError
from agent.llm.faults import build_status_error, hide_endpoint_details

WHERE = "https://api.example/v1"
GEMINI = [
    {
        "error": {
            "code": 400,
            "message": "API key not valid. Please pass a valid API key.",
            "status": "INVALID_ARGUMENT",
            "details": [{"reason": "API_KEY_INVALID", "domain": "googleapis.com"}],
        }
    }
]
XAI = {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: ab***yz."}
CODED = {"error": {"message": "Bad request", "code": "invalid_api_key"}}
REASONED = {"error": {"message": "No.", "details": [{"reason": "API_KEY_INVALID"}]}}
FLAGGED = {
    "error": {
        "code": 403,
        "message": "Your chosen model requires moderation and your input was flagged",
        "metadata": {"reasons": ["violence"]},
    }
}
FILTERED = {"error": {"message": "The response was stopped", "code": "content_filter"}}
OPAQUE_FLAG = {"error": {"message": "No.", "metadata": {"reasons": ["violence"]}}}


def build(status: int, body: object) -> ModelError:
    return build_status_error(status, {}, json.dumps(body).encode(), WHERE)


@pytest.mark.parametrize(
    ("status", "body"),
    [(400, GEMINI), (400, XAI), (400, CODED), (422, REASONED), (401, {}), (403, {"error": "not for this project"})],
)
def test_a_refused_key_is_the_operators_matter(status: int, body: object) -> None:
    error = build(status, body)
    assert isinstance(error, ModelAuthError)
    assert error.remedy == "key"
    assert "ab***yz" not in hide_endpoint_details(error, WHERE)


@pytest.mark.parametrize("body", [FLAGGED, FILTERED, OPAQUE_FLAG])
def test_refused_content_is_the_callers(body: object) -> None:
    error = build(403, body)
    assert isinstance(error, ModelRequestError)
    assert body["error"]["message"] in hide_endpoint_details(error, WHERE)  # type: ignore[index]


@pytest.mark.parametrize(
    "message", ["temperature: must be at most 1", "tools.0.name: invalid", "unknown field api_key_name in the schema"]
)
def test_other_faults_of_a_request_stay_the_callers(message: str) -> None:
    assert isinstance(build(400, {"error": {"message": message}}), ModelRequestError)
