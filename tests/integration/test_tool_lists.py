"""A key's list of tools holds at every endpoint that does a tool's work: all routes are walked."""

import re
from pathlib import Path
from typing import Any

import httpx

from agent.core.settings import Settings
from gateway.app import create_app
from tests.integration.conftest import Serve
from tests.integration.test_fuzz import _flat
from tests.support.keys import bearer, created_key
from tests.support.script import answers, says, script
from tests.support.scripted_server import ScriptedServer

WITHOUT_A_TOOL = {
    "for everybody": "/ /web/{name:path} /health /healthz /ready /readyz /openapi.json /.well-known/agent-card.json",
    "what there is": "/tools /v1/tools /v1/skills /v1/models /v1/models/ /v1/models/{model:path} /v1/me",
    "run with the key's tools": """/query /a2a /mcp /mcp/{view} /v1/agent /v1/ag-ui /v1/chat/completions /v1/completions
        /v1/responses /v1/studio/requests /v1/runs/{run_id}/fork /tasks /tasks/{task_id}/run
        /v1/schedules/{schedule}/run /api/v2/agent/conversations/{conversation_id}/messages
        /v1/conversations/{conversation_id}/messages""",
    "runs and conversations of the caller": """/v1/runs /v1/runs/{run_id} /v1/runs/{run_id}/events
        /v1/runs/{run_id}/prompts
        /v1/runs/{run_id}/artifacts/{name:path} /v1/runs/{run_id}/cancel /v1/runs/{run_id}/approve
        /v1/runs/{run_id}/reject /v1/runs/{run_id}/reply /v1/approvals /v1/studio/requests/{run_id}
        /v1/responses/{response_id} /v1/responses/{response_id}/cancel /v1/responses/{response_id}/input_items
        /v1/responses/input_tokens /v1/conversations /v1/conversations/{conversation_id}
        /v1/conversations/{conversation_id}/items /v1/conversations/{conversation_id}/items/{item_id}
        /v1/conversations/{session_id:path}/state /v1/conversations/{conversation_id}/head
        /v1/conversations/{conversation_id}/messages/{message_id}/events
        /v1/conversations/{conversation_id}/messages/{message_id}/stop
        /v1/conversations/{conversation_id}/export /tasks/{task_id} /tasks/{task_id}/runs /tasks/{task_id}/runs/latest
        /api/v2/agent/conversations /api/v2/agent/conversations/{conversation_id}
        /api/v2/agent/conversations/{conversation_id}/abandon
        /api/v2/agent/conversations/{conversation_id}/uncertainties/{uncertainty_id}/resolve
        /v1/jobs /v1/jobs/{job_id} /v1/webhooks/deliveries /v1/webhooks/deliveries/{delivery_id}/retry""",
    "texts of the caller": "/v1/embeddings /v1/render /v1/guardrails/check",
    "what no tool does": """/v1/sources/{source_id} /v1/memories/{memory_id} /metrics /v1/usage /v1/audit
        /v1/users/{owner:path}
        /v1/queue /v1/queue/{job_id} /v1/queue/{job_id}/retry /v1/admin/keys /v1/admin/keys/{key_id} /v1/admin/models
        /v1/admin/models/test /v1/admin/models/{name} /v1/admin/file-roots""",
}
"""The paths that do no tool's work, by the reason. A path that does must refuse a key without its tool."""
METHODS_WITHOUT_A_TOOL = {
    ("GET", "/v1/sources"), ("DELETE", "/v1/collections/{name}"), ("DELETE", "/v1/documents/{document_id}"),
}  # fmt: skip
"""The same for one method of a path."""


async def test_a_list_of_tools_holds_at_each_route_that_does_a_tools_work(serve: Serve, tmp_path: Path) -> None:
    routes = {
        (method, route.path)
        for route in _flat(create_app(Settings(data_dir=tmp_path / "other")).routes)
        for method in (route.methods or {"POST"}) - {"HEAD"}
    }
    free_paths = {path for paths in WITHOUT_A_TOOL.values() for path in paths.split()}
    free_doors = {door for door in routes if door[1] in free_paths} | METHODS_WITHOUT_A_TOOL
    assert free_paths <= {path for _, path in routes}, "a path that is no longer served"
    wrong = []
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        narrow = bearer(await created_key(tmp_path / "data", "x", tools="current_time", scopes="admin"))
        wide = bearer(await created_key(tmp_path / "data", "y", scopes="admin"))
        for method, path in sorted(routes - free_doors):
            address = re.sub(r"{\w+(:path)?}", "x", path)
            body: Any = None if method in ("GET", "DELETE") else {}
            refused = await client.request(method, address, json=body, headers=narrow)
            if refused.status_code != 403 or "does not allow the tool" not in refused.text:
                wrong.append(f"{method} {path}: {refused.status_code}")
            elif (await client.request(method, address, json=body, headers=wide)).status_code == 403:
                wrong.append(f"{method} {path}: refused with every tool")
    assert len(routes - free_doors) > 50
    assert not wrong, "require the tool (`require_tool`), or name the path here:\n" + "\n".join(wrong)


async def test_a_key_without_the_tool_for_memories_is_told_none(
    serve: Serve, tmp_path: Path, model_server: ScriptedServer
) -> None:
    model = script(answers("I do not know."), says("I do not know."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        call = {"tool": "memory_save", "args": {"text": "The code of the safe is zanzibar."}}
        noted = await client.post("/v1/agent", json={"prompt": "", "metadata": {"tool_calls": [call]}})
        assert noted.json()["metadata"]["tool_results"][0]["ok"], noted.text
        for tools, is_told in (("calculator,memory_search", True), ("calculator", False)):
            key = bearer(await created_key(tmp_path / "data", tools, tools=tools))
            before = len(model_server.requests())
            body = {"prompt": "What is the code of the safe?"}
            answer = await client.post("/v1/agent", json=body, headers=key)
            sent = str([one["body"] for one in model_server.requests()[before:]])
            assert ("zanzibar" in sent + answer.text) is is_told, (tools, answer.text)
