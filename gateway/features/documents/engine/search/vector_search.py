"""The vector branch of retrieval: finds passages by the vectors of a real embedder.

Every passage has an entry in the set `make_vector_set_name(owner, collection)`: its chunk id, its document id as scope,
so that filters narrow the search itself, and the checksum of its text, so that it is embedded once.
"""

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from agent.core.errors import AgentError, EmbedderError, StoreError, VectorSpaceError
from agent.core.models import JsonObject
from agent.core.vector_space import VectorSpace
from agent.llm.embedder import Embedded, Embedder, LocalEmbedder
from agent.llm.embedder.port import EMBEDDER_SETTINGS
from agent.storage.vectors import Entry, Hit, StoredVectors, VectorIndex
from gateway.features.documents.engine.search.embedder_calibration import Calibration, EmbedderCalibration
from gateway.features.documents.engine.search.lexical import LexicalIndex, Passage, Selection
from gateway.features.documents.engine.search.naming import VectorSets, make_vector_set_name

MAX_SCOPES = 2_000
"""A filter that selects more documents is not sent to the vector index; its hits are filtered here instead."""
SCOPES_PER_LISTING = 500
"""Documents named in one listing; older SQLite versions allow a thousand parameters."""
MAX_HITS = 100_000
NO_EMBEDDER = f"no embedder is set ({EMBEDDER_SETTINGS}), so passages were found by their words alone"


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A passage found by its vector.

    `similarity` is calibrated: 0 is the mean cosine of unrelated passages of the collection, 1 that of the halves of
    one passage, whatever the model.
    """

    id: str
    cosine: float
    similarity: float


@dataclass(frozen=True, slots=True)
class VectorResult:
    """The hits, best first, or the `note` why there are none.

    `requested_hits` are those of the passages the caller asked for; `weight` is the weight of the branch, from 0 to 1.
    """

    hits: tuple[VectorHit, ...] = ()
    requested_hits: Mapping[str, VectorHit] = field(default_factory=dict)
    weight: float = 0.0
    note: str = ""


class VectorSearch:
    """Searches by vectors. Never raises an error of the embedder or of the vector index."""

    def __init__(self, vectors: VectorIndex, embedder: Embedder | None) -> None:
        self._vectors = vectors
        # The local embedder hashes letters: it finds the same passages as the words do, less reliably.
        self._embedder = None if isinstance(embedder, LocalEmbedder) else embedder
        self._check = EmbedderCalibration(self._embedder) if self._embedder is not None else None

    async def search(
        self,
        collection: str,
        query: str,
        *,
        owner: str,
        limit: int,
        selection: Selection | None,
        index: LexicalIndex,
        also: Sequence[str] = (),
        sets: VectorSets | None = None,
    ) -> VectorResult:
        """The passages nearest to the query within the selection, and the similarity of those in `also`."""
        if self._embedder is None or self._check is None:
            return VectorResult(note=NO_EMBEDDER)
        name, remaking = sets or VectorSets(make_vector_set_name(owner, collection))
        try:
            embedded = await self._embedder.embed([query])
            if embedded.space.embedder == LocalEmbedder.space.embedder:
                return VectorResult(note=NO_EMBEDDER)
            stored = await self._vectors.get_vectors(name, also, owner=owner)
            if stored.space is None:
                return VectorResult(
                    note=f"no passage of {collection!r} has a vector yet, so only its words were searched; "
                    + _explain_reindex(collection, under_way=bool(remaking))
                )
            if stored.space != embedded.space:
                why = _explain_space_mismatch(collection, stored.space, embedded.space, under_way=bool(remaking))
                return VectorResult(note=f"passages were found by their words alone: {why}")
            calibration = await self._check.calibrate(index, owner, collection, embedded.space, query)
            if calibration.weight <= 0:
                return VectorResult(
                    note=f"{embedded.space.embedder} does not read this collection well, so its vectors were not used"
                )
            hits = await self._find_nearest(name, embedded.vectors[0], owner, limit, selection)
        except (EmbedderError, VectorSpaceError, StoreError) as error:
            return VectorResult(note=_explain_fallback(error))
        hits_found = tuple(_make_hit(hit.item.id, hit.score, calibration) for hit in hits)
        others = {
            one: _make_hit(one, score, calibration)
            for one, score in _compute_cosines(embedded.vectors[0], stored).items()
        }
        return VectorResult(hits_found, others, calibration.weight)

    async def _find_nearest(
        self, name: str, vector: Sequence[float], owner: str, limit: int, selection: Selection | None
    ) -> list[Hit]:
        """The nearest passages of the selection, exactly.

        Hits come in the order of their distance; more are fetched until enough of them belong to the selection.
        """
        if selection is None:
            return await self._vectors.search(name, vector, owner=owner, limit=limit)
        documents = sorted(set(selection.documents.values()))
        scopes = documents if len(documents) <= MAX_SCOPES else None
        wanted = min(limit, len(selection.documents))
        fetch = 2 * limit
        while wanted:
            hits = await self._vectors.search(name, vector, owner=owner, limit=fetch, scopes=scopes)
            passed = [hit for hit in hits if hit.item.id in selection.documents]
            if len(passed) >= wanted or len(hits) < fetch or fetch >= MAX_HITS:
                return passed[:limit]
            fetch *= 4
        return []


async def embed_passages(
    passages: Sequence[Passage],
    embedder: Embedder,
    vectors: VectorIndex,
    *,
    owner: str,
    collection: str,
    name: str = "",
    documents: Sequence[str] = (),
) -> Embedded:
    """A vector for each passage, for `build_entries`. Expects at least one passage.

    Vectors of unchanged texts are reused if the set has them for these documents or for `documents`, the replaced ones.
    The set `name` (default: the first set of the collection) exists afterwards. Raises `EmbedderError`,
    `VectorSpaceError` and `StoreError`.
    """
    name = name or make_vector_set_name(owner, collection)
    texts = [format_passage_text(passage) for passage in passages]
    scopes = sorted({passage.document_id for passage in passages} | set(documents))
    parts = [scopes[start : start + SCOPES_PER_LISTING] for start in range(0, len(scopes), SCOPES_PER_LISTING)]
    items = [i for part in parts for i in await vectors.list_items(name, owner=owner, limit=MAX_HITS, scopes=part)]
    stored_ids = {str(item.payload["checksum"]): item.id for item in items if "checksum" in item.payload}
    wanted = {text: stored_ids[mark] for text in texts if (mark := compute_checksum(text)) in stored_ids}
    stored = await vectors.get_vectors(name, sorted(set(wanted.values())), owner=owner)
    stored_vectors = {
        text: tuple(stored.vectors[one].tolist()) for text, one in wanted.items() if one in stored.vectors
    }
    missing = [text for text in dict.fromkeys(texts) if text not in stored_vectors]
    space = stored.space
    if missing or space is None:
        embedded = await embedder.embed(missing)
        if space is not None and embedded.space != space:
            raise VectorSpaceError(_explain_space_mismatch(collection, space, embedded.space), agent_id="memory")
        await vectors.open(name, embedded.space)
        space = embedded.space
        stored_vectors |= dict(zip(missing, embedded.vectors, strict=True))
    return Embedded(space, tuple(stored_vectors[text] for text in texts))


def build_entries(passages: Sequence[Passage], embedded: Embedded, *, owner: str) -> list[Entry]:
    """The entries of a vector set, one for each passage."""
    return [
        Entry(passage.chunk_id, owner, vector, _build_payload(passage), passage.document_id)
        for passage, vector in zip(passages, embedded.vectors, strict=True)
    ]


def format_passage_text(passage: Passage) -> str:
    """The text of a passage that is embedded."""
    return f"{passage.title}\n{passage.text}"


def compute_checksum(text: str) -> str:
    """A 128-bit checksum of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _build_payload(passage: Passage) -> JsonObject:
    return {"checksum": compute_checksum(format_passage_text(passage))}


def _make_hit(identity: str, cosine: float, calibration: Calibration) -> VectorHit:
    return VectorHit(
        identity,
        cosine,
        (cosine - calibration.unrelated_cosine) / (calibration.related_cosine - calibration.unrelated_cosine),
    )


def _compute_cosines(query: Sequence[float], stored: StoredVectors) -> dict[str, float]:
    """The cosines of the query and stored vectors, which are normalized."""
    if not stored.vectors:
        return {}
    vector = np.array(query, np.float32)
    scores = np.stack(list(stored.vectors.values())) @ (vector / max(float(np.linalg.norm(vector)), 1e-12))
    return dict(zip(stored.vectors, scores.tolist(), strict=True))


def _explain_space_mismatch(
    collection: str, stored: VectorSpace, embedded: VectorSpace, *, under_way: bool = False
) -> str:
    return (
        f"the vectors of {collection!r} were made by {stored}, the embedder is {embedded}; set it back, or "
        + _explain_reindex(collection, under_way=under_way)
    )


def _explain_reindex(collection: str, *, under_way: bool) -> str:
    """Describes how to rebuild the vectors, or that this is under way."""
    command = f"`stepgate collections reindex {shlex.quote(collection)}`"
    return (
        f"wait until they are rebuilt, which is under way ({command} continues it)"
        if under_way
        else f"rebuild them with {command}"
    )


def _explain_fallback(error: AgentError) -> str:
    return f"passages were found by their words alone: {error.message}"
