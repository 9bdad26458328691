"""Our own tools, one file a family, and `builtin_tools` that makes them from settings."""

from dataclasses import dataclass

from agent.core.config import Settings
from agent.core.memory import MemoryStore
from agent.core.net import SafeClient
from agent.knowledge.library import Library
from agent.tools import Tool
from mcp_tools.builtin.answer import AnswerWithCitationsTool
from mcp_tools.builtin.calculator import CalculatorTool
from mcp_tools.builtin.current_time import CurrentTimeTool
from mcp_tools.builtin.files import FileRoots, ListFilesTool, ReadFileTool, SearchFilesTool
from mcp_tools.builtin.incident import incident_tools
from mcp_tools.builtin.ingest import IngestTool
from mcp_tools.builtin.knowledge import SearchKnowledgeTool
from mcp_tools.builtin.list_documents import ListDocumentsTool
from mcp_tools.builtin.memory import MemorySaveTool, MemorySearchTool
from mcp_tools.builtin.web_fetch import WebFetchTool


@dataclass(frozen=True, slots=True)
class Builtins:
    """The tools, and what must be closed with them."""

    tools: tuple[Tool, ...]
    client: SafeClient
    web_fetch: WebFetchTool

    async def aclose(self) -> None:
        """Close connections."""
        await self.web_fetch.aclose()
        await self.client.aclose()


def builtin_tools(settings: Settings, memory: MemoryStore, library: Library) -> Builtins:
    """Every tool that ships with the product. Makes the default files folder where it is used."""
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
    tools: tuple[Tool, ...] = (
        web_fetch,
        ReadFileTool(roots),
        ListFilesTool(roots),
        SearchFilesTool(roots),
        CalculatorTool(),
        CurrentTimeTool(),
        MemorySaveTool(memory),
        MemorySearchTool(memory),
        SearchKnowledgeTool(library),
        ListDocumentsTool(library),
        AnswerWithCitationsTool(library, settings.browser_url),
        IngestTool(library, settings.readable_roots),
        *incident_tools(settings, library),
    )
    return Builtins(tools, client, web_fetch)
