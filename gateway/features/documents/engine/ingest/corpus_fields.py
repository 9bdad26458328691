"""Metadata names that the index reserves for passages of a corpus."""

INDEX_WORDS = frozenset(
    {
        "source", "source_type", "source_url", "doc_id", "document_id", "file_type", "pages", "start", "end",
        "heading_path", "boxes", "checksum", "file_checksum", "scores", "title", "match_service", "match_severity",
    }
)  # fmt: skip
"""Names that a document's own metadata cannot use. `title` is set by a mapping's `title`."""
SERVICE_FIELDS = ("service", "project", "component")
SEVERITY_FIELDS = ("severity", "priority")
"""Metadata that searches by service and severity match, whatever its spelling."""
