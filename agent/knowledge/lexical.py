"""`LexicalIndex`: passages of an owner's collections, found by their words. The contract of its drivers.

`tests/contract/lexical_contract.py` holds every driver to it. They are `PostingsIndex` on the rows of
`lexical_sqlite.py` (FTS5) or `lexical_postgres.py` (tsvector).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent.core.models import JsonObject

DOCUMENT_FIELD = "document_id"
"""A field every passage can be filtered by, beside those of its metadata."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as it is searched. The title counts more than the text.

    Searches can be filtered by the metadata's strings, numbers, truths, and lists of them."""

    chunk_id: str
    document_id: str
    title: str
    text: str
    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Indexed:
    """A passage with the terms it is found by, in their order."""

    passage: Passage
    title_terms: tuple[str, ...]
    text_terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """A found passage. `score` is BM25F, comparable within one search; `coverage` the share of the query that the
    passage holds, from 0 to 1, each term weighted by its rarity; `strict` says that it holds every term."""

    indexed: Indexed
    score: float
    coverage: float
    strict: bool

    @property
    def id(self) -> str:
        """The chunk's id."""
        return self.indexed.passage.chunk_id


@dataclass(frozen=True, slots=True)
class LexicalResult:
    """Hits, best first; `total` passages hold one of the terms or more. `weights` says how much each term of the query
    counts for coverage, `rarities` for the score; `means` are the mean lengths of titles and texts, in terms. `forms`
    says which of these a term stands for that passages in another language than English have instead."""

    hits: tuple[LexicalHit, ...] = ()
    total: int = 0
    weights: Mapping[str, float] = field(default_factory=dict)
    rarities: Mapping[str, float] = field(default_factory=dict)
    means: tuple[float, float] = (0.0, 0.0)
    forms: Mapping[str, str] = field(default_factory=dict)

    def told(self, indexed: Indexed) -> Indexed:
        """A passage by the terms of this search; its hits are told so already."""
        if not self.forms:
            return indexed
        title, text = (
            tuple(self.forms.get(one, one) for one in row) for row in (indexed.title_terms, indexed.text_terms)
        )
        return Indexed(indexed.passage, title, text)


@dataclass(frozen=True, slots=True)
class Selection:
    """The passages that filters let through, chunk id to document id, of `total` in the collection."""

    documents: Mapping[str, str]
    total: int


class LexicalIndex(Protocol):
    """A collection is there as soon as something is put into it, and every owner has their own of each name.

    Filters name metadata fields: a passage's value must equal the filter's, or one of them where either is a list.
    A filter by a field that no passage of the collection has is a `BadRequestError` naming those there are.
    All methods raise `StoreError`."""

    async def put(self, collection: str, passages: Sequence[Passage], *, owner: str) -> None:
        """Add passages, replacing those with the same chunk id; all or none."""
        ...

    async def search(
        self, collection: str, query: str, *, owner: str, limit: int, filters: JsonObject | None = None
    ) -> LexicalResult:
        """Passages that hold every term of the query, then, to fill up `limit`, those that hold some.

        Nothing in the query is syntax. Nothing is found in an unknown collection."""
        ...

    async def select(self, collection: str, *, owner: str, filters: JsonObject) -> Selection:
        """What the filters let through."""
        ...

    async def passages(self, collection: str, chunk_ids: Sequence[str], *, owner: str) -> Mapping[str, Indexed]:
        """Passages by chunk id; those that are not there are missing."""
        ...

    async def sample(self, collection: str, *, owner: str, limit: int) -> list[Passage]:
        """Passages from all over the collection, the same ones until it changes."""
        ...

    async def renew(self, collection: str, chunk_ids: Sequence[str], *, owner: str) -> int:
        """Cut a document's passages into terms anew, as `put` would now; how many have other terms than before."""
        ...

    async def delete(self, collection: str, document_ids: Sequence[str], *, owner: str) -> int:
        """Remove the passages of documents; how many there were."""
        ...

    async def drop(self, collection: str, *, owner: str) -> None:
        """Remove a whole collection; dropping what is not there is done already."""
        ...
