"""Which files of a source a dry run tries: the same ones each time, of every type and size there is."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappush, heappushpop
from pathlib import Path

from agent.knowledge.connectors.port import Fetched, Missed


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be tried; `path` is None where there are no bytes, `owned` when it is ours to remove."""

    found: Fetched | Missed
    path: Path | None = None
    owned: bool = False


class Sampler:
    """Takes what a walk finds, and keeps a few of each kind: by type and order of magnitude of size. Which ones is
    decided by a hash of seed and source, so that neither the order of the walk nor its length counts."""

    def __init__(self, count: int, seed: int) -> None:
        self._count = count
        self._seed = seed
        self._kept: dict[str, list[tuple[int, str, Candidate]]] = {}
        self.offered = 0

    def wants(self, found: Fetched | Missed) -> bool:
        """Whether it would be kept by now: the bytes of others need not be."""
        kept = self._kept.get(_kind(found), [])
        return len(kept) < self._count or -self._rank(found) > kept[0][0]

    def offer(self, candidate: Candidate) -> Candidate | None:
        """Keep it; the one that has to go for it, if any."""
        kept = self._kept.setdefault(_kind(candidate.found), [])
        entry = (-self._rank(candidate.found), candidate.found.source, candidate)
        if len(kept) < self._count:
            heappush(kept, entry)
            return None
        return heappushpop(kept, entry)[2]

    def chosen(self) -> list[Candidate]:
        """The sample: one of each kind in turn until there are enough."""
        return [candidate for candidate, _ in zip(self._in_turn(), range(self._count), strict=False)]

    def _in_turn(self) -> Iterator[Candidate]:
        queues = [sorted(kept, key=lambda entry: (-entry[0], entry[1])) for _, kept in sorted(self._kept.items())]
        for place in range(max(map(len, queues), default=0)):
            for queue in queues:
                if place < len(queue):
                    yield queue[place][2]

    def _rank(self, found: Fetched | Missed) -> int:
        digest = hashlib.blake2b(f"{self._seed}\x00{found.source}".encode("utf-8", "replace"), digest_size=8)
        return int.from_bytes(digest.digest(), "big")


def _kind(found: Fetched | Missed) -> str:
    if isinstance(found, Missed):
        return f"~{found.error.code}"
    size = found.output.file_size_bytes if found.output is not None else 0
    return f"{found.file_type or '~' + Path(found.name).suffix.lower()[:16]}:{len(str(size)):02}"
