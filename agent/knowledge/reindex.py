"""`Reindexing`: the terms and vectors of a collection, made anew from its stored passages, after a release that stems
other words or the embedder was changed.

Terms take the place of the old ones document by document; a search finds either. Vectors are made in a set of their
own. The old set serves whoever still has its embedder until the new one is whole; then the two change places, and the
old one goes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from agent.core.embedder import LocalEmbedder
from agent.core.errors import BadRequestError
from agent.core.memory import EMBEDDER_SETTINGS
from agent.core.vectors import Space
from agent.knowledge.collection_store import Collection, CollectionStore
from agent.knowledge.dense import embedded, entries
from agent.knowledge.documents import Document
from agent.knowledge.naming import VectorSets, vector_set
from agent.knowledge.pipeline_check import route
from agent.knowledge.shelf import Shelf

BATCH_PASSAGES = 256
"""Passages that are embedded and written at a time: what an interruption loses at most."""
_PROBE = "probe"


@dataclass(slots=True)
class ReindexReport:
    """What was made: `chunks` passages of `documents` have vectors by `embedder` now, and `words` passages have other
    terms than before."""

    collection: str
    documents: int = 0
    chunks: int = 0
    seconds: float = 0.0
    embedder: str = ""
    words: int = 0


@dataclass(slots=True)
class Reindexing:
    """One collection's terms and vectors made anew, by whoever holds it."""

    collection: Collection
    documents: Sequence[Document]
    shelf: Shelf
    collections: CollectionStore

    async def run(self, progress: Callable[[str, int, int | None], None]) -> ReindexReport:
        """To the end, or to the first error; what is made by then is not made again. Raises what `Library.reindex`
        does."""
        started = monotonic()
        words = await self._renew(progress)
        embedder = self.shelf.embedder
        if embedder is None or isinstance(embedder, LocalEmbedder):
            if words:
                return ReindexReport(self.collection.name, seconds=monotonic() - started, words=words)
            raise BadRequestError(
                f"the words are up to date; no embedder is set ({EMBEDDER_SETTINGS}), so there are no vectors to make"
            )
        space = (await embedder.embed([_PROBE])).space
        target = await self._begun(space)
        report = ReindexReport(self.collection.name, embedder=str(space), words=words)
        wanted = [one for one in self.documents if self._wants_vectors(one)]
        batch: list[str] = []
        for done, document in enumerate(wanted):
            progress(document.name, done, len(wanted))
            batch += document.chunk_ids
            if len(batch) >= BATCH_PASSAGES:
                report.chunks += await self._make(batch, target)
                batch = []
        report.chunks += await self._make(batch, target)
        report.documents = len(wanted)
        await self._change_places(target)
        await self._say(space, wanted)
        progress("", len(wanted), len(wanted))
        report.seconds = monotonic() - started
        return report

    async def _renew(self, progress: Callable[[str, int, int | None], None]) -> int:
        """The terms of each document anew; how many passages have other ones now."""
        owner, name = self.shelf.hold.owner, self.collection.name
        changed = 0
        for done, document in enumerate(self.documents):
            progress(document.name, done, len(self.documents))
            changed += await self.shelf.lexical.renew(name, document.chunk_ids, owner=owner)
        return changed

    async def _begun(self, space: Space) -> str:
        """The set to be filled: the serving one where it is of this space already, and lacks some vectors."""
        owner, name, sets = self.shelf.hold.owner, self.collection.name, self.shelf.sets
        serving = (await self.shelf.vectors.stored(sets.serving, [], owner=owner)).space
        target = sets.serving if serving in (space, None) else vector_set(owner, name, str(space))
        if sets.remaking not in ("", target):
            await self.shelf.vectors.drop(sets.remaking)  # begun for an embedder that is not set any more
        await self._set(VectorSets(sets.serving, "" if target == sets.serving else target))
        await self.shelf.vectors.open(target, space)
        return target

    async def _make(self, chunk_ids: Sequence[str], target: str) -> int:
        """The vectors of some passages; those that are there already are not asked for again."""
        owner, name = self.shelf.hold.owner, self.collection.name
        assert self.shelf.embedder is not None
        indexed = await self.shelf.lexical.passages(name, chunk_ids, owner=owner)
        passages = [indexed[one].passage for one in chunk_ids if one in indexed]
        for start in range(0, len(passages), BATCH_PASSAGES):
            part = passages[start : start + BATCH_PASSAGES]
            made = await embedded(
                part, self.shelf.embedder, self.shelf.vectors, owner=owner, collection=name, name=target
            )
            await self.shelf.vectors.put(target, entries(part, made, owner=owner))
        return len(passages)

    async def _change_places(self, target: str) -> None:
        """Let the new set serve. The old one is noted until it is gone, so that a crash leaves nothing behind."""
        old = self.shelf.sets.serving
        if old == target:
            return
        await self._set(VectorSets(target, old))
        await self.shelf.vectors.drop(old)
        await self._set(VectorSets(target))

    async def _say(self, space: Space, documents: Sequence[Document]) -> None:
        """Note on the collection and its documents who made their vectors."""
        owner, name = self.shelf.hold.owner, self.collection.name
        for document in documents:
            if document.embedder != str(space):
                await self.shelf.documents.put(owner, name, replace(document, embedder=str(space)))
        await self.collections.put(owner, replace(self.collection, embedder=str(space)))

    async def _set(self, sets: VectorSets) -> None:
        await self.collections.set_vectors(self.shelf.hold.owner, self.collection.name, sets)
        self.shelf.sets = sets

    def _wants_vectors(self, document: Document) -> bool:
        way = route(self.collection.pipeline, document.file_type)
        return bool(document.chunk_ids) and (document.embedder != "" or way is None or way.wants_vectors)
