"""`TermIndex`: the terms of one collection in a Tantivy index, in a folder or in memory.

It holds no texts: only which passages, by number, have which terms and metadata. All of it can be made again from the
rows of the database. Every method blocks and is called in a thread. Imported by the first search: Tantivy takes 3 MB.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import tantivy
from tantivy import Occur, Query

from agent.text.snowball import SNOWBALL_LANGUAGES
from agent.text.terms import make_language_marker
from gateway.features.documents.engine.search.bm25 import TITLE_WEIGHT
from gateway.features.documents.engine.search.filters import Filter, list_facets, make_unknown_field_error
from gateway.features.documents.engine.search.lexical import IndexedPassage
from gateway.features.documents.engine.search.term_index_types import IndexBusyError, IndexWriteError, TermStatistics

FORMAT = 1
"""Raised when the fields below change; an index of another format is made again."""
WRITER_BYTES = 30_000_000
"""Memory of a writer while it writes; Tantivy's least is 15 MB."""
_SEPARATOR = "\x1f"
"""Between a field and its value. It is a control character, which no field name has."""


class TermIndex:
    """One collection. Open it once in a process, write in one thread at a time, search in any."""

    def __init__(self, folder: Path | None) -> None:
        """Opens or creates the index in a folder, or in memory. Raises `StoreError` if the folder cannot be written."""
        self._folder = folder
        self._state: dict[str, int] = {}
        self.reopen()

    def reopen(self) -> None:
        """Opens the index again. One that is damaged, or of another format, is replaced by an empty one."""
        try:
            with _lock(self._folder):
                try:
                    self._open()
                except (ValueError, OSError):
                    self._create()
        except (ValueError, OSError) as error:
            raise IndexWriteError(str(error)).to_store_error() from error

    def clear(self) -> None:
        """Replaces the index by an empty one."""
        try:
            with _lock(self._folder):
                self._create()
        except (ValueError, OSError) as error:
            raise IndexWriteError(str(error)).to_store_error() from error

    @property
    def changes(self) -> int:
        """The change counter of the collection when the index was last written."""
        return self._state.get("changes", 0)

    def reload(self) -> None:
        """Makes visible what any process has written."""
        self._index.reload()
        self._searcher = self._index.searcher()
        newest = self._searcher.search(Query.all_query(), 1, count=False, order_by_field="number").hits
        self.last = int(newest[0][0]) if newest else 0
        """The highest number of a passage, or 0."""
        self.languages = tuple(
            name for name in SNOWBALL_LANGUAGES if self._searcher.doc_freq("terms", make_language_marker(name))
        )
        """The languages of its passages for which there is a stemmer."""
        self._mean_lengths = self._read_mean_lengths() if newest else (0.0, 0.0)

    def write(self, changes: int, added: Mapping[int, IndexedPassage], removed: Sequence[int]) -> tantivy.IndexWriter:
        """Adds and removes passages, and makes this visible; call `wait_merging_threads` of what it returns afterwards.

        Passages that another process has added meanwhile are left out. Raises `IndexBusyError` and `IndexWriteError`.
        """
        try:
            writer = self._index.writer(WRITER_BYTES, 1)
        except ValueError as error:
            raise (IndexBusyError() if "LockBusy" in str(error) else IndexWriteError(str(error))) from error
        try:
            self.reload()
            if removed:
                # By query: `delete_documents_by_term` takes the number for a signed one, and removes nothing.
                writer.delete_documents_by_query(Query.term_set_query(_SCHEMA, "number", removed))
            for number, passage in added.items():
                if number > self.last:
                    writer.add_document(_to_document(number, passage))
            self._save_state(changes)
            writer.commit()
            self.reload()
        except (ValueError, OSError) as error:
            raise IndexWriteError(str(error)) from error
        return writer

    def get_statistics(self, terms: Iterable[str]) -> TermStatistics:
        """The statistics of terms."""
        passages = self._searcher.num_docs
        # Removed passages are counted until their segment is merged.
        frequencies = {term: min(passages, self._searcher.doc_freq("terms", term)) for term in terms}
        return TermStatistics(passages, frequencies, self._mean_lengths)

    def find(self, forms: Sequence[Sequence[str]], limit: int, filters: Sequence[Filter]) -> list[int]:
        """The numbers of the best passages that have one form of each term, then of those that have some.

        Raises `BadRequestError` for a filter by a field that no passage has.
        """
        required = self._build_filters(filters)
        terms = [self._match_any_term(own) for own in forms]
        strict = Query.boolean_query([*((Occur.Must, term) for term in terms), *required])
        numbers = self._search(strict, limit)
        if len(numbers) < limit:
            # Within another query Tantivy does not skip what cannot be among the best, which costs a fifth more.
            loose = Query.boolean_query([(Occur.Must, _match_any(terms)), *required]) if required else _match_any(terms)
            numbers = [*dict.fromkeys([*numbers, *self._search(loose, limit)])]
        return numbers

    def select(self, filters: Sequence[Filter]) -> list[int]:
        """The numbers of all passages that pass the filters. Raises `BadRequestError` as `find` does."""
        required = self._build_filters(filters)
        return self._search(Query.boolean_query(required), self._searcher.num_docs) if required else []

    @property
    def passages(self) -> int:
        """The number of passages."""
        return self._searcher.num_docs

    def _open(self) -> None:
        if self._folder is None:
            self._index = tantivy.Index(_SCHEMA)
        else:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._state = _read_state(self._folder)
            if self._state.get("format", FORMAT) != FORMAT:
                raise ValueError("another format")
            self._index = tantivy.Index(_SCHEMA, str(self._folder))
        self._index.config_reader("manual")
        self.reload()

    def _create(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._state = {}
        self._open()

    def _save_state(self, changes: int) -> None:
        """Written before the commit, so that an index is never ahead of its state."""
        self._state = {"format": FORMAT, "changes": max(changes, self.changes)}
        if self._folder is not None:
            temporary = self._folder / f"state-{os.getpid()}.tmp"
            temporary.write_text(json.dumps(self._state), "utf-8")
            temporary.replace(self._folder / "state.json")

    def _search(self, query: Query, limit: int) -> list[int]:
        # Tantivy allocates for as many hits as it is asked for.
        limit = min(limit, self._searcher.num_docs)
        if limit < 1:
            return []
        hits = self._searcher.search(query, limit, count=False).hits
        return [int(one or 0) for one in self._searcher.fast_field_values("number", [at for _, at in hits])]

    def _match_any_term(self, forms: Sequence[str]) -> Query:
        return _match_any([Query.term_query(_SCHEMA, "terms", form, "freq") for form in forms])

    def _build_filters(self, filters: Sequence[Filter]) -> list[tuple[Occur, Query]]:
        required = [(Occur.Must, Query.const_score_query(_build_filter(one), 0.0)) for one in filters]
        if any(not self._search(query, 1) for _, query in required):
            field_names = [name for name, _ in self._searcher.terms_with_prefix("fields", "") if self._has_field(name)]
            unknown = [one.field for one in filters if one.field not in field_names]
            if field_names and unknown:
                raise make_unknown_field_error(unknown[0], field_names)
        return required

    def _has_field(self, name: str) -> bool:
        """Whether a passage has the field; the names of removed passages stay until their segment is merged."""
        return bool(self._search(Query.term_query(_SCHEMA, "fields", name, "basic"), 1))

    def _read_mean_lengths(self) -> tuple[float, float]:
        wanted = {name: {"avg": {"field": name}} for name in ("title_length", "text_length")}
        aggregates = self._searcher.aggregate(Query.all_query(), wanted)
        return float(aggregates["title_length"]["value"]), float(aggregates["text_length"]["value"])


def _build_schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("number", indexed=True, fast=True)
    builder.add_unsigned_field("title_length", fast=True)
    builder.add_unsigned_field("text_length", fast=True)
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("facets", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("fields", tokenizer_name="raw", index_option="basic")
    return builder.build()


_SCHEMA = _build_schema()


def _to_document(number: int, indexed: IndexedPassage) -> tantivy.Document:
    document = tantivy.Document()
    document.add_unsigned("number", number)
    document.add_unsigned("title_length", len(indexed.title_terms))
    document.add_unsigned("text_length", len(indexed.text_terms))
    # One field for both: a term has one document frequency. A title's terms count as often as they weigh.
    document.add_text("terms", " ".join((*(indexed.title_terms * int(TITLE_WEIGHT)), *indexed.text_terms)))
    facets = list_facets(indexed.passage)
    for name in {name for name, _ in facets}:
        document.add_text("fields", name)
    for name, value in facets:
        document.add_text("facets", f"{name}{_SEPARATOR}{value}")
    return document


def _build_filter(one: Filter) -> Query:
    return Query.term_set_query(_SCHEMA, "facets", [f"{one.field}{_SEPARATOR}{value}" for value in one.values])


def _match_any(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, one) for one in queries])


@contextmanager
def _lock(folder: Path | None) -> Iterator[None]:
    """Keeps other processes from opening or making the index at the same time."""
    if folder is None:
        yield
        return
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read_state(folder: Path) -> dict[str, int]:
    with suppress(FileNotFoundError):
        state = json.loads((folder / "state.json").read_text("utf-8"))
        if isinstance(state, dict):
            return state
    return {}
