"""Resources of the MCP server: steps and reports of runs, files of skills."""

import json

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agent.core.errors import NotFoundError
from agent.core.models import ENDED_STATUSES
from agent.run_context.run import Run
from agent.runs.response import build_response
from agent.runs.service import AgentService
from agent.runs.trace_details import shorten
from agent.runs.trace_projection import build_trace
from mcp_tools.server.current_principal import get_current_owner
from mcp_tools.server.sessions import Context
from mcp_tools.server.skills import SkillViews
from mcp_tools.server.subscriptions import parse_run_uri

MAX_LISTED_RUNS = 20
MAX_COMPLETIONS = 20
RESOURCE_NOT_FOUND = -32002
"""The error code of era 2025; era 2026 uses "invalid params" instead (SEP-2164)."""
ENDED_TTL_MS = 300_000
"""An ended run does not change; five minutes limit how long a client caches the report of a deleted one."""

TEMPLATES = (
    types.ResourceTemplate(uri_template="run://{run_id}/steps", name="steps of a run", mime_type="application/json"),
    types.ResourceTemplate(uri_template="run://{run_id}/report", name="report of a run", mime_type="text/markdown"),
)


class Resources:
    """The resources that one request can see."""

    def __init__(self, service: AgentService[Run], skills: SkillViews) -> None:
        self._service, self._skills = service, skills

    async def list(self) -> list[types.Resource]:
        """The reports of the newest runs, then the skills."""
        rows = await self._service.list_runs(owner=get_current_owner(), limit=MAX_LISTED_RUNS)
        reports = [
            types.Resource(uri=f"run://{row.run_id}/report", name=row.title or row.run_id, mime_type="text/markdown")
            for row in rows
        ]
        return [*reports, *self._skills.list_resources()]

    async def read(self, context: Context, uri: str) -> types.ReadResourceResult:
        """The resource at the URI. Raises `MCPError` if there is none."""
        run_id = parse_run_uri(uri)
        if run_id is not None:
            return await self._read_run(context, uri, run_id)
        resource = await self._skills.read_resource(uri)
        if resource is None:
            hint = "use run://ID/steps, run://ID/report, or a URI of the list"
            raise make_not_found_error(context, uri, f"there is no resource {shorten(uri, 100)!r}; {hint}")
        return resource

    async def require_exists(self, context: Context, uri: str) -> None:
        """Raises the same `MCPError` as `read` for a missing resource, without reading its content."""
        run_id = parse_run_uri(uri)
        if run_id is None:
            await self.read(context, uri)
            return
        try:
            await self._service.get_run(run_id, owner=get_current_owner())
        except NotFoundError as error:
            raise make_not_found_error(context, uri, error.message) from error

    async def complete(self, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Run ids for the templates' argument `run_id`, and nothing for other arguments."""
        values: list[str] = []
        of_run = isinstance(params.ref, types.ResourceTemplateReference) and params.argument.name == "run_id"
        if of_run and any(template.uri_template == params.ref.uri for template in TEMPLATES):  # type: ignore[union-attr]
            rows = await self._service.list_runs(owner=get_current_owner(), limit=100)
            values = [row.run_id for row in rows if row.run_id.startswith(params.argument.value)]
        listed_values = values[:MAX_COMPLETIONS]
        return types.CompleteResult(
            completion=types.Completion(
                values=listed_values, total=len(values), has_more=len(values) > len(listed_values)
            )
        )

    async def _read_run(self, context: Context, uri: str, run_id: str) -> types.ReadResourceResult:
        try:
            row = await self._service.get_run(run_id, owner=get_current_owner())
            events = await self._service.read_events(run_id, owner=get_current_owner())
        except NotFoundError as error:
            raise make_not_found_error(context, uri, error.message) from error
        if uri.endswith("/steps"):
            steps = [step.model_dump(mode="json") for step in build_trace(events)]
            text, kind = json.dumps(steps, ensure_ascii=False), "application/json"
        else:
            response = build_response(events)
            lines = [f"- {step.type}: {step.title} ({step.status})" for step in response.steps]
            text, kind = "\n".join([response.response, "", "## Steps", "", *lines]), "text/markdown"
        contents = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
        ttl_ms = ENDED_TTL_MS if row.status in ENDED_STATUSES else 0
        return types.ReadResourceResult(contents=[contents], ttl_ms=ttl_ms)


def make_not_found_error(context: Context, uri: str, message: str) -> MCPError:
    """The error for a missing resource, with the code of the client's protocol version."""
    modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return MCPError(types.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND, message, {"uri": uri})
