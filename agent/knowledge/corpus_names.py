"""What the index says of a passage of a corpus, beside the document's own metadata."""

INDEX_WORDS = frozenset(
    {
        "source", "source_type", "source_url", "doc_id", "document_id", "file_type", "pages", "start", "end",
        "heading_path", "boxes", "checksum", "file_checksum", "scores", "title", "match_service", "match_severity",
    }
)  # fmt: skip
"""Names that a document's metadata cannot have; `title` is written by a mapping's own `title`."""
SERVICE_FIELDS = ("service", "project", "component")
SEVERITY_FIELDS = ("severity", "priority")
"""Metadata that searches by service and severity match, whatever it is written like."""
