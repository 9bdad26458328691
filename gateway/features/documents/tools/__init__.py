"""The tools that search documents and answer from them."""

from agent.core.settings import Settings
from agent.tools import Tool
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.tools.answer import AnswerWithCitationsTool
from gateway.features.documents.tools.ingest import IngestTool
from gateway.features.documents.tools.knowledge import SearchKnowledgeTool, measure_relevance
from gateway.features.documents.tools.list_documents import ListDocumentsTool
from gateway.features.documents.tools.source_credentials import SOURCE_CREDENTIAL_TOOL, SourceCredentialTool

__all__ = ["SOURCE_CREDENTIAL_TOOL", "SourceCredentialTool", "make_document_tools", "measure_relevance"]


def make_document_tools(settings: Settings, library: Library) -> tuple[Tool, ...]:
    """The four tools of documents."""
    return (
        SearchKnowledgeTool(library),
        ListDocumentsTool(library),
        AnswerWithCitationsTool(library, settings.browser_url),
        IngestTool(library, settings.readable_roots),
    )
