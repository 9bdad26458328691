"""`Reindexing`: rebuilds a collection's terms and vectors from its stored passages, after a release with other stemming
or a change of embedder.

Terms are replaced document by document; a search finds either. Vectors are made in a set of their own. The old set
serves until the new one is complete; then they swap, and the old one is dropped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from agent.core.errors import BadRequestError
from agent.core.vector_space import VectorSpace
from agent.llm.embedder import LocalEmbedder
from agent.llm.embedder.port import EMBEDDER_SETTINGS
from gateway.features.documents.engine.ingest.collection_store import Collection, CollectionStore
from gateway.features.documents.engine.ingest.index_writer import IndexWriter
from gateway.features.documents.engine.ingest.pipeline_check import find_route
from gateway.features.documents.engine.search.documents import Document
from gateway.features.documents.engine.search.naming import VectorSets, make_vector_set_name
from gateway.features.documents.engine.search.vector_search import build_entries, embed_passages

BATCH_PASSAGES = 256
"""Passages embedded and written at a time: the most that an interruption loses."""
_PROBE = "probe"


@dataclass(slots=True)
class ReindexReport:
    """The result: `chunks` passages of `documents` have vectors by `embedder`; `words` passages have other terms than
    before."""

    collection: str
    documents: int = 0
    chunks: int = 0
    seconds: float = 0.0
    embedder: str = ""
    words: int = 0


@dataclass(slots=True)
class Reindexing:
    """Rebuilds one collection. The caller holds its lock."""

    collection: Collection
    documents: Sequence[Document]
    writer: IndexWriter
    collections: CollectionStore

    async def run(self, progress: Callable[[str, int, int | None], None]) -> ReindexReport:
        """Runs to the end or the first error; what is made is not made again. Raises what `Library.reindex` raises."""
        started = monotonic()
        words = await self._rebuild_terms(progress)
        embedder = self.writer.embedder
        if embedder is None or isinstance(embedder, LocalEmbedder):
            if words:
                return ReindexReport(self.collection.name, seconds=monotonic() - started, words=words)
            raise BadRequestError(
                f"the words are up to date; no embedder is set ({EMBEDDER_SETTINGS}), so there are no vectors to make"
            )
        space = (await embedder.embed([_PROBE])).space
        target = await self._open_target_set(space)
        report = ReindexReport(self.collection.name, embedder=str(space), words=words)
        wanted = [one for one in self.documents if self._wants_vectors(one)]
        batch: list[str] = []
        for done, document in enumerate(wanted):
            progress(document.name, done, len(wanted))
            batch += document.chunk_ids
            if len(batch) >= BATCH_PASSAGES:
                report.chunks += await self._embed_batch(batch, target)
                batch = []
        report.chunks += await self._embed_batch(batch, target)
        report.documents = len(wanted)
        await self._swap_sets(target)
        await self._record_embedder(space, wanted)
        progress("", len(wanted), len(wanted))
        report.seconds = monotonic() - started
        return report

    async def _rebuild_terms(self, progress: Callable[[str, int, int | None], None]) -> int:
        """Rebuilds the terms of each document; returns how many passages changed."""
        owner, name = self.writer.lock.owner, self.collection.name
        changed = 0
        for done, document in enumerate(self.documents):
            progress(document.name, done, len(self.documents))
            changed += await self.writer.lexical.refresh_terms(name, document.chunk_ids, owner=owner)
        return changed

    async def _open_target_set(self, space: VectorSpace) -> str:
        """The set to fill: the serving one if it already has this vector space and only lacks vectors."""
        owner, name, sets = self.writer.lock.owner, self.collection.name, self.writer.sets
        serving = (await self.writer.vectors.get_vectors(sets.serving, [], owner=owner)).space
        target = sets.serving if serving in (space, None) else make_vector_set_name(owner, name, str(space))
        if sets.remaking not in ("", target):
            await self.writer.vectors.drop(sets.remaking)  # begun for an embedder that is not set any more
        await self._save_sets(VectorSets(sets.serving, "" if target == sets.serving else target))
        await self.writer.vectors.open(target, space)
        return target

    async def _embed_batch(self, chunk_ids: Sequence[str], target: str) -> int:
        """Makes the vectors of some passages; existing ones are not requested again."""
        owner, name = self.writer.lock.owner, self.collection.name
        assert self.writer.embedder is not None
        indexed = await self.writer.lexical.get_passages(name, chunk_ids, owner=owner)
        passages = [indexed[one].passage for one in chunk_ids if one in indexed]
        for start in range(0, len(passages), BATCH_PASSAGES):
            part = passages[start : start + BATCH_PASSAGES]
            made = await embed_passages(
                part, self.writer.embedder, self.writer.vectors, owner=owner, collection=name, name=target
            )
            await self.writer.vectors.put(target, build_entries(part, made, owner=owner))
        return len(passages)

    async def _swap_sets(self, target: str) -> None:
        """Lets the new set serve. The old set stays recorded until it is dropped, so that a crash leaves nothing
        behind."""
        old = self.writer.sets.serving
        if old == target:
            return
        await self._save_sets(VectorSets(target, old))
        await self.writer.vectors.drop(old)
        await self._save_sets(VectorSets(target))

    async def _record_embedder(self, space: VectorSpace, documents: Sequence[Document]) -> None:
        """Records the embedder on the collection and its documents."""
        owner, name = self.writer.lock.owner, self.collection.name
        for document in documents:
            if document.embedder != str(space):
                await self.writer.documents.put(owner, name, replace(document, embedder=str(space)))
        await self.collections.put(owner, replace(self.collection, embedder=str(space)))

    async def _save_sets(self, sets: VectorSets) -> None:
        await self.collections.set_vector_sets(self.writer.lock.owner, self.collection.name, sets)
        self.writer.sets = sets

    def _wants_vectors(self, document: Document) -> bool:
        route = find_route(self.collection.pipeline, document.file_type)
        return bool(document.chunk_ids) and (document.embedder != "" or route is None or route.wants_vectors)
