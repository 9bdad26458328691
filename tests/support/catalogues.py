"""Catalogues of foreign servers from `data/servers_300.yaml`, and everyday requests that need their tools."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from agent.core.bounded_yaml import load_trusted_yaml
from agent.core.models import JsonObject
from agent.tools import ToolAnnotations, ToolSpec
from mcp_tools.client.remote_tool import make_local_tool_name
from tests.support.processes import ROOT

DATA = ROOT / "tests" / "support" / "data"
ANNOTATIONS = ToolAnnotations(read_only=True, destructive=False)


@dataclass(frozen=True)
class EverydayRequest:
    """A request as people write it. `tools` are those that would do, as they are registered; none without need."""

    id: str
    language: str
    text: str
    expected: str
    tools: tuple[str, ...]


@cache
def load_requests() -> tuple[EverydayRequest, ...]:
    """Every request of the data, in its order."""
    rows = load_trusted_yaml((DATA / "everyday_requests.yaml").read_text("utf-8"))["requests"]
    return tuple(
        EverydayRequest(
            row["id"],
            row["language"],
            row["text"],
            row["expected"],
            tuple(make_local_tool_name(*name.split("/")) for name in (row["tool"], *row["others"]) if name),
        )
        for row in rows
    )


@cache
def load_servers() -> dict[str, dict[str, Any]]:
    """The servers by name, each with its `instructions` and `tools`."""
    rows = load_trusted_yaml((DATA / "servers_300.yaml").read_text("utf-8"))["servers"]
    return {row["name"]: row for row in rows}


@cache
def load_specs() -> tuple[ToolSpec, ...]:
    """The 300 tools as the registry has them, in order of name."""
    specs = [_spec(server, tool) for server, row in load_servers().items() for tool in row["tools"]]
    return tuple(sorted(specs, key=lambda spec: spec.name))


def _spec(server: str, tool: dict[str, Any]) -> ToolSpec:
    arguments: dict[str, Any] = tool.get("arguments") or {}
    properties: JsonObject = {
        name: {key: value for key, value in schema.items() if key != "required"} for name, schema in arguments.items()
    }
    required = [name for name, schema in arguments.items() if schema.get("required")]
    schema: JsonObject = {"type": "object", "properties": properties, "required": list(required)}
    name = make_local_tool_name(server, tool["name"])
    return ToolSpec(name, tool["description"], schema, None, ANNOTATIONS, tainted=True, origin=f"mcp:{server}")
