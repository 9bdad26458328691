"""Results and errors of `TermIndex`."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.core.errors import StoreError


class IndexBusyError(Exception):
    """Another process writes the index now. It takes milliseconds, rarely two seconds; then try again."""


class IndexWriteError(Exception):
    """The index cannot be written: `TermIndex.reopen` and try again, or report it by `to_store_error`."""

    def to_store_error(self) -> StoreError:
        """The error for users."""
        return StoreError(
            f"the search index cannot be written: {self}; check the space and the owner of the data folder; nothing is "
            "lost, the index is made from the database",
            agent_id="store",
        )


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """Statistics for BM25: the number of passages, how many have each term, and the mean lengths of title and text."""

    passages: int
    frequencies: Mapping[str, int]
    mean_lengths: tuple[float, float]
