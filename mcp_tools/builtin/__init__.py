"""The built-in tools, one file for each family; `make_builtin_tools` creates them from the settings."""

from dataclasses import dataclass

from agent.core.settings import Settings
from agent.net import SafeClient
from agent.run_context.ground_sources import GroundFile
from agent.run_context.memory import MemoryStore
from agent.tools import Tool
from mcp_tools.builtin.calculator import CalculatorTool
from mcp_tools.builtin.current_time import CurrentTimeTool
from mcp_tools.builtin.extract import ExtractTool
from mcp_tools.builtin.file_roots import FileRoots
from mcp_tools.builtin.files import ListFilesTool, ReadFileTool, SearchFilesTool
from mcp_tools.builtin.memory import MemorySaveTool, MemorySearchTool
from mcp_tools.builtin.run_python import RunPythonTool, make_run_python
from mcp_tools.builtin.tables import DescribeTableTool, QueryTableTool
from mcp_tools.builtin.web_fetch import WebFetchTool


@dataclass(frozen=True, slots=True)
class Builtins:
    """The built-in tools, and the connections to close with them."""

    tools: tuple[Tool, ...]
    client: SafeClient
    web_fetch: WebFetchTool
    roots: FileRoots
    run_python: RunPythonTool | None
    """None where it is switched off or the machine cannot sandbox programs."""

    def walk_files(self) -> list[GroundFile]:
        """The readable files, at most as many as a listing visits; blocks."""
        return [GroundFile(place.display_path, info.st_mtime) for place, info in self.roots.walk("", "*")]

    async def aclose(self) -> None:
        """Closes connections."""
        if self.run_python is not None:
            await self.run_python.aclose()
        await self.web_fetch.aclose()
        await self.client.aclose()


def make_builtin_tools(settings: Settings, memory: MemoryStore) -> Builtins:
    """The plain tools; features add theirs. Creates the default files folder if it is used."""
    if not settings.file_roots:
        settings.readable_roots[0].mkdir(parents=True, exist_ok=True)
    roots = FileRoots(settings.readable_roots)
    client = SafeClient(settings.fetch_allow_hosts)
    web_fetch = WebFetchTool(
        client,
        fetcher_url=settings.fetcher_url,
        max_bytes=settings.fetch_max_bytes,
        fetch_timeout_s=settings.fetch_timeout_s,
    )
    run_python = make_run_python(settings, roots)
    tools: tuple[Tool, ...] = (
        web_fetch,
        ReadFileTool(roots),
        ListFilesTool(roots),
        SearchFilesTool(roots),
        DescribeTableTool(roots),
        QueryTableTool(roots),
        *([run_python] if run_python is not None else []),
        CalculatorTool(),
        ExtractTool(),
        CurrentTimeTool(),
        MemorySaveTool(memory),
        MemorySearchTool(memory),
    )
    return Builtins(tools, client, web_fetch, roots, run_python)
