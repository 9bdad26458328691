"""`IngestReport`: what an ingestion has read, skipped and removed."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gateway.features.documents.engine.ingest.file_types import TYPES
from gateway.features.documents.engine.search.models import CoverageSummary

Progress = Callable[[str, int, int | None], None]
"""Called for each document with its name, how many are done, and how many there are (None while unknown)."""

REMEDIES: Mapping[str, str] = {
    "ERR_CONNECTOR_AUTH": "give another credential that may read it (credentials_id, --credentials), or leave it out",
    "ERR_PARSER_ENCRYPTED": "give the password of a PDF (password_id, --password-file), or leave it out",
    "ERR_CONNECTOR_FAILED": "read it again later",
    "ERR_CONNECTOR_REFUSED": "ask the site's owner for another way to it, or give the address it leads to as a source",
    "ERR_TIMEOUT": "give its parser more time (timeout_s), or leave it out; a silent source: try again later",
}
"""The advice for a skipped document, by error code."""


@dataclass(frozen=True, slots=True)
class SkippedDocument:
    """A document that was not read, and why."""

    source: str
    code: str
    reason: str

    @property
    def remedy(self) -> str:
        """The advice for the person responsible; empty if there is none."""
        return REMEDIES.get(self.code, "")


@dataclass(slots=True)
class IngestReport:
    """The result of an ingestion. `left_out` counts files that the pipeline excludes."""

    collection: str
    read: int = 0
    unchanged: int = 0
    removed: int = 0
    left_out: int = 0
    chunks: int = 0
    seconds: float = 0.0
    skipped: list[SkippedDocument] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    template: str = ""
    embedder: str = ""
    coverage: CoverageSummary | None = None

    @property
    def by_reason(self) -> dict[str, int]:
        """How many documents were skipped, by error code."""
        return dict(Counter(one.code for one in self.skipped))

    @property
    def processed_count(self) -> int:
        """How many documents were found so far."""
        return self.read + self.unchanged + self.left_out + len(self.skipped)

    @property
    def nothing_read_reason(self) -> str:
        """Why nothing was read, as a sentence; empty if something was read, now or before."""
        if self.read or self.unchanged:
            return ""
        if self.skipped:
            return "nothing was read: every document that was found was skipped"
        if self.left_out:
            return "nothing was read: the pipeline excludes every document that was found"
        type_names = ", ".join(sorted(TYPES))
        return f"nothing was read: every file is hidden or ignored, or of another type than {type_names} and text"

    @property
    def interruption_note(self) -> str:
        """The state that an interrupted ingestion leaves, and how to continue."""
        return (
            f"{self.read} document{'s' if self.read != 1 else ''} had been read into {self.collection!r} by then, and "
            "can be searched; everything else there is unchanged. To continue, ingest the same source again"
        )

    def add_notes(self, *notes: str) -> None:
        """Adds the notes that are not there yet."""
        self.notes += [note for note in dict.fromkeys(notes) if note and note not in self.notes]
