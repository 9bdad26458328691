"""Errors of conversations and tasks carry the message as `detail` too, where clients of FastAPI look for it."""

import httpx
import pytest

from tests.integration.conftest import Serve, client_of


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/v2/agent/conversations/none", None, 404),
        ("POST", "/api/v2/agent/conversations", {"source_id": "none"}, 404),
        ("POST", "/tasks", {"prompt": ""}, 422),
        ("GET", "/tasks/none", None, 404),
        ("GET", "/tasks/none/runs/latest", None, 404),
    ],
)
async def test_errors_have_their_message_as_detail(
    serve: Serve, method: str, path: str, body: dict[str, str] | None, status: int
) -> None:
    async with client_of(serve) as client:
        response = await client.request(method, path, json=body)
        assert response.status_code == status, response.text
        assert response.json()["detail"] == response.json()["error"]["message"]
        elsewhere: httpx.Response = await client.get("/v1/runs/none")
        assert "detail" not in elsewhere.json()
