"""Reads a poem. Imported by worker processes only."""

from gateway.features.documents.engine.ingest.parsers.draft import Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile


def read_verses(source: InputFile) -> Draft:
    """The title as a heading and each stanza as a paragraph."""
    title, _, rest = source.data.decode("utf-8").strip().partition("\n")
    draft = Draft(metadata={"title": title.strip()})
    draft.add_heading(title.strip(), 1)
    for stanza in rest.strip().split("\n\n"):
        draft.add_text(stanza.strip())
    return draft
