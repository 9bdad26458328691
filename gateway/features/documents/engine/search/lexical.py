"""`LexicalIndex`: the contract of the lexical search over the collections of an owner.

`TantivyIndex` implements it on the rows of `lexical_sqlite.py` or `lexical_postgres.py`;
`tests/contract/lexical_contract.py` tests both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent.core.models import JsonObject

DOCUMENT_FIELD = "document_id"
"""The field by which every passage can be filtered, in addition to its metadata."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as it is indexed. The title weighs more than the text.

    Searches can be filtered by metadata values that are strings, numbers, booleans, or lists of them.
    """

    chunk_id: str
    document_id: str
    title: str
    text: str
    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """A passage with its index terms in order."""

    passage: Passage
    title_terms: tuple[str, ...]
    text_terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """A passage found by its words.

    `score` is BM25F and comparable within one search. `coverage` is the idf-weighted share of the query terms that the
    passage contains, from 0 to 1; `has_all_terms` says that it contains every one.
    """

    indexed: IndexedPassage
    score: float
    coverage: float
    has_all_terms: bool

    @property
    def id(self) -> str:
        """The chunk id."""
        return self.indexed.passage.chunk_id


@dataclass(frozen=True, slots=True)
class LexicalResult:
    """The hits, best first, and what is needed to score other passages the same way.

    `weights` are the coverage weights of the query terms and `idf` their
    idf; `mean_lengths` are the mean lengths of titles and texts in terms. `variants` maps the stems that passages in
    other languages have to the query term they stand for.
    """

    hits: tuple[LexicalHit, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    idf: Mapping[str, float] = field(default_factory=dict)
    mean_lengths: tuple[float, float] = (0.0, 0.0)
    variants: Mapping[str, str] = field(default_factory=dict)

    def normalize_terms(self, indexed: IndexedPassage) -> IndexedPassage:
        """The passage with variants replaced by query terms. The hits are normalized already."""
        if not self.variants:
            return indexed
        title, text = (
            tuple(self.variants.get(one, one) for one in row) for row in (indexed.title_terms, indexed.text_terms)
        )
        return IndexedPassage(indexed.passage, title, text)


@dataclass(frozen=True, slots=True)
class Selection:
    """The passages that filters select, as chunk id to document id, out of `total` in the collection."""

    documents: Mapping[str, str]
    total: int


class LexicalIndex(Protocol):
    """Indexes and searches passages. A collection exists once something is put into it; every owner has their own.

    Filters name metadata fields: the value of a passage must equal the value of the filter, or one of them if either is
    a list. A filter by a field that no passage of the collection has raises a `BadRequestError` that lists the known
    fields. All methods raise `StoreError`.
    """

    async def put(self, collection: str, passages: Sequence[Passage], *, owner: str) -> None:
        """Adds passages and replaces those with the same chunk id, all or none."""
        ...

    async def search(
        self, collection: str, query: str, *, owner: str, limit: int, filters: JsonObject | None = None
    ) -> LexicalResult:
        """Passages with every query term first, then passages with some, up to `limit`.

        The query has no syntax. An unknown collection has no hits.
        """
        ...

    async def select(self, collection: str, *, owner: str, filters: JsonObject) -> Selection:
        """The passages that the filters select."""
        ...

    async def get_passages(
        self, collection: str, chunk_ids: Sequence[str], *, owner: str
    ) -> Mapping[str, IndexedPassage]:
        """Passages by chunk id; unknown ids are left out."""
        ...

    async def sample(self, collection: str, *, owner: str, limit: int) -> list[Passage]:
        """Passages spread over the collection; the same ones until it changes."""
        ...

    async def refresh_terms(self, collection: str, chunk_ids: Sequence[str], *, owner: str) -> int:
        """Recomputes the terms of passages with the current stemmers, and returns how many changed."""
        ...

    async def delete(self, collection: str, document_ids: Sequence[str], *, owner: str) -> int:
        """Removes the passages of documents and returns their number."""
        ...

    async def drop(self, collection: str, *, owner: str) -> None:
        """Removes a collection, if it exists."""
        ...
