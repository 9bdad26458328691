"""A parser: text files whose first line is a title and whose stanzas keep their lines."""

from gateway.features.documents.engine.ingest.parsers.registry import Reader

VERSES = Reader(
    "verses",
    ("txt",),
    "stepgate_poems.verses:read_verses",
    "Poems: the first line is the title, each stanza one block",
    "poems as text files",
)
