"""Resources of the MCP server: runs as steps and as reports, the files of skills, and what extras add."""

import json
from collections.abc import Sequence

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agent.core.errors import NotFoundError
from agent.core.response import respond
from agent.core.service import ENDED, AgentService
from agent.core.trace import project, shorten
from agent.execution.run import Run
from mcp_tools.server_changes import run_of
from mcp_tools.server_extras import Extras
from mcp_tools.server_sessions import Context
from mcp_tools.server_skills import SkillShelf

LISTED_RUNS = 20
COMPLETIONS = 20
RESOURCE_NOT_FOUND = -32002
"""Of the 2025 era; the 2026 revision says "invalid params" instead (SEP-2164)."""
ENDED_TTL_MS = 300_000
"""What has ended does not change; five minutes bound how long a client keeps a report of a deleted run."""

TEMPLATES = (
    types.ResourceTemplate(uri_template="run://{run_id}/steps", name="steps of a run", mime_type="application/json"),
    types.ResourceTemplate(uri_template="run://{run_id}/report", name="report of a run", mime_type="text/markdown"),
)


class Resources:
    """The resources of one request's view of the gateway."""

    def __init__(self, service: AgentService[Run], skills: SkillShelf, extras: Extras) -> None:
        self._service, self._skills, self._extras = service, skills, extras

    async def list(self) -> list[types.Resource]:
        """The reports of the newest runs, then the skills."""
        rows = await self._service.list_runs(limit=LISTED_RUNS)
        reports = [
            types.Resource(uri=f"run://{row.run_id}/report", name=row.title or row.run_id, mime_type="text/markdown")
            for row in rows
        ]
        return [*reports, *self._skills.resources(), *self._extras.resources]

    def templates(self) -> Sequence[types.ResourceTemplate]:
        """Any run, as its steps or as a report."""
        return [*TEMPLATES, *self._extras.templates]

    async def read(self, context: Context, uri: str) -> types.ReadResourceResult:
        """What lies at the URI; an error of the protocol where nothing does."""
        run_id = run_of(uri)
        if run_id is not None:
            return await self._read_run(context, uri, run_id)
        found = await self._skills.read(uri) or self._extras.read(uri)
        if found is None:
            hint = "use run://ID/steps, run://ID/report, or a URI of the list"
            raise not_found(context, uri, f"there is no resource {shorten(uri, 100)!r}; {hint}")
        return found

    async def check(self, context: Context, uri: str) -> None:
        """Raise what `read` raises for a URI where nothing lies, without reading what may be long."""
        run_id = run_of(uri)
        if run_id is None:
            if not any(resource.uri == uri for resource in self._extras.resources):
                await self.read(context, uri)
            return
        try:
            await self._service.get(run_id)
        except NotFoundError as error:
            raise not_found(context, uri, error.message) from error

    async def complete(self, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Ids of runs for the templates; nothing for what is free text."""
        values: list[str] = []
        of_run = isinstance(params.ref, types.ResourceTemplateReference) and params.argument.name == "run_id"
        if of_run and any(template.uri_template == params.ref.uri for template in TEMPLATES):  # type: ignore[union-attr]
            rows = await self._service.list_runs(limit=100)
            values = [row.run_id for row in rows if row.run_id.startswith(params.argument.value)]
        shown = values[:COMPLETIONS]
        return types.CompleteResult(
            completion=types.Completion(values=shown, total=len(values), has_more=len(values) > len(shown))
        )

    async def _read_run(self, context: Context, uri: str, run_id: str) -> types.ReadResourceResult:
        try:
            row = await self._service.get(run_id)
            events = await self._service.read(run_id)
        except NotFoundError as error:
            raise not_found(context, uri, error.message) from error
        if uri.endswith("/steps"):
            steps = [step.model_dump(mode="json") for step in project(events)]
            text, kind = json.dumps(steps, ensure_ascii=False), "application/json"
        else:
            response = respond(events)
            lines = [f"- {step.type}: {step.title} ({step.status})" for step in response.steps]
            text, kind = "\n".join([response.response, "", "## Steps", "", *lines]), "text/markdown"
        contents = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
        ttl_ms = ENDED_TTL_MS if row.status in ENDED else 0
        return types.ReadResourceResult(contents=[contents], ttl_ms=ttl_ms)


def not_found(context: Context, uri: str, message: str) -> MCPError:
    """The error for a resource that is not there, in the words of the client's revision."""
    modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return MCPError(types.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND, message, {"uri": uri})
