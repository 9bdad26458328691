"""The ids of what waits for a person, as a client finds them: in an answer, or at `GET /v1/approvals`."""

from collections.abc import Mapping
from typing import Any

import httpx


def ids_of(asked: Mapping[str, Any]) -> list[str]:
    """The approval ids of a response of `/v1/agent`, a run's detail, a completion or a report over MCP."""
    found = asked.get("response", asked) if isinstance(asked.get("response"), dict) else asked
    listed = found.get("approvals") or found.get("metadata", {}).get("approvals") or []
    return [str(one["approval_id"]) for one in listed]


async def list_open_ids(client: httpx.AsyncClient, run_id: str, headers: dict[str, str] | None = None) -> list[str]:
    """The ids of the approvals that a run waits for now."""
    response = await client.get("/v1/approvals", headers=headers)
    assert response.status_code == 200, response.text
    return [one["id"] for one in response.json()["data"] if one["run_id"] == run_id]
