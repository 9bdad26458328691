"""Chooses the files that a dry run tries: a reproducible sample over all types and sizes."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappush, heappushpop
from itertools import count
from pathlib import Path

from gateway.features.documents.engine.ingest.connectors.port import FetchedDocument, MissedDocument


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be tried. `path` is None if it has no bytes; `is_copy`: the dry run may delete it."""

    found: FetchedDocument | MissedDocument
    path: Path | None = None
    is_copy: bool = False


class Sampler:
    """Keeps a few of the offered files for each type and order of magnitude of size.

    A hash of seed and source ranks them, so neither the walk's order nor its length changes the sample.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._seed = seed
        self._kept: dict[str, list[tuple[int, str, int, Candidate]]] = {}
        self._added = count()
        self.seen_count = 0

    def would_keep(self, found: FetchedDocument | MissedDocument) -> bool:
        """Whether the file would be kept now, so that the bytes of others need not be copied."""
        stratum = self._kept.get(_choose_stratum(found), [])
        return len(stratum) < self._size or -self._rank(found) > stratum[0][0]

    def add(self, candidate: Candidate) -> Candidate | None:
        """Adds a file; returns the one that is dropped for it, if any."""
        stratum = self._kept.setdefault(_choose_stratum(candidate.found), [])
        # The number keeps candidates from being compared: a site may list one address twice.
        entry = (-self._rank(candidate.found), candidate.found.source, -next(self._added), candidate)
        if len(stratum) < self._size:
            heappush(stratum, entry)
            return None
        return heappushpop(stratum, entry)[3]

    def sample(self) -> list[Candidate]:
        """The sample: one file of each kind in turn until there are enough."""
        return [candidate for candidate, _ in zip(self._round_robin(), range(self._size), strict=False)]

    def _round_robin(self) -> Iterator[Candidate]:
        queues = [
            sorted(stratum, key=lambda entry: (-entry[0], entry[1], -entry[2]))
            for _, stratum in sorted(self._kept.items())
        ]
        for place in range(max(map(len, queues), default=0)):
            for queue in queues:
                if place < len(queue):
                    yield queue[place][3]

    def _rank(self, found: FetchedDocument | MissedDocument) -> int:
        digest = hashlib.blake2b(f"{self._seed}\x00{found.source}".encode("utf-8", "replace"), digest_size=8)
        return int.from_bytes(digest.digest(), "big")


def _choose_stratum(found: FetchedDocument | MissedDocument) -> str:
    if isinstance(found, MissedDocument):
        return f"~{found.error.code}"
    size = found.output.file_size_bytes if found.output is not None else 0
    return f"{found.file_type or '~' + Path(found.name).suffix.lower()[:16]}:{len(str(size)):02}"
