"""The order of the requests of a message: what the router's model wrote about it, mended where no order follows.

Small models count from 1, name a request itself, or one that is not there. What each request asks for stays as it is.
"""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

Needs = Sequence[Sequence[int]]
"""The requests that each request needs, counted from 0."""


def order_requests(needs: Needs) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The requests in an order in which each follows those that it needs: the place that each had, and the new places
    of those that it needs. The order stays as it was where it can.
    """
    mended = _mend(needs)
    order = _sort(mended)
    new_place = {old: new for new, old in enumerate(order)}
    return tuple((old, tuple(sorted(new_place[other] for other in mended[old]))) for old in order)


def _mend(needs: Needs) -> list[set[int]]:
    """What each request needs, without cycles. Numbers that only fit if the first request is 1 are read so."""
    places = range(len(needs))
    if not _points_back(needs):
        lowered = [[other - 1 for other in others] for others in needs]
        if _points_back(lowered):
            needs = lowered
    mended = [{other for other in others if other in places and other != at} for at, others in enumerate(needs)]
    try:
        _sort(mended)
    except CycleError:
        return [{other for other in others if other < at} for at, others in enumerate(mended)]
    return mended


def _points_back(needs: Needs) -> bool:
    return all(0 <= other < at for at, others in enumerate(needs) for other in others)


def _sort(needs: Sequence[set[int]]) -> list[int]:
    """The requests, each after those that it needs; of several that may be next, the first. Raises `CycleError`."""
    sorter = TopologicalSorter(dict(enumerate(needs)))
    sorter.prepare()
    order, ready = [], [*sorter.get_ready()]
    while ready:
        ready.sort()
        order.append(ready.pop(0))
        sorter.done(order[-1])
        ready += sorter.get_ready()
    return order
