"""Declarations of features about their rows: which belong to owners and to runs, which are old, which runs they need.

Nothing here needs a feature that is built: rows are deleted while their feature is off, too.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from agent.storage.run_deletion import SqlCondition
from agent.storage.sql import SqlClient, SqlStatement


@dataclass(frozen=True, slots=True)
class FeatureTables:
    """The tables of all features, referring tables first."""

    owned: tuple[str, ...] = ()
    """Those with a column `owner`: their rows are deleted with everything of an owner."""
    work: tuple[str, ...] = ()
    """Those of `owned` whose rows start or do work: they are deleted first, so that no more of it begins."""
    of_runs: tuple[str, ...] = ()
    """Those with a column `run_id` whose rows are deleted with their run."""


NO_TABLES = FeatureTables()


@dataclass(frozen=True, slots=True)
class OldRows:
    """Some rows that are old, with the statement that deletes those that are still old then."""

    count: int
    deletion: SqlStatement


ListOldRows = Callable[[SqlClient, float], AsyncIterator[OldRows]]
"""Yields what is older than a time (UTC seconds since 1970), some hundred rows at a time."""


@dataclass(frozen=True, slots=True)
class AgingRows:
    """Rows of one kind that are forgotten because of their age."""

    list_old: ListOldRows
    name: str = ""
    """What reports call them, such as `webhook deliveries`; "": they are not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRetention:
    """What a feature has to do with age: rows that are forgotten, runs that are not."""

    aging: tuple[AgingRows, ...] = ()
    list_needed_runs: Callable[[SqlClient], Awaitable[set[str]]] | None = None
    """The runs that its rows need, for ever."""
    build_need_condition: Callable[[float], SqlCondition] | None = None
    """The condition that a row which was written since a time needs the run `runs.run_id`: a pass takes hours."""
    delete_with_runs: Callable[[SqlClient, Sequence[str], float], Awaitable[list[SqlStatement]]] | None = None
    """The statements that delete what it keeps of runs which are forgotten, in the transaction that deletes these; the
    time is that before which things are old. Not used where a run is deleted by its owner."""
