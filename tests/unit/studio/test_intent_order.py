"""The order of a message's requests, also where a model writes one that cannot be."""

import pytest

from gateway.features.studio.engine.intent_order import order_requests


@pytest.mark.parametrize(
    ("needs", "ordered"),
    [
        ([], ()),
        ([[], [0], [0, 1]], ((0, ()), (1, (0,)), (2, (0, 1)))),
        ([[], [1], [2]], ((0, ()), (1, (0,)), (2, (1,)))),  # counted from 1
        ([[], [1], [1, 2]], ((0, ()), (1, (0,)), (2, (0, 1)))),
        ([[0], [0]], ((0, ()), (1, (0,)))),  # itself
        ([[], [9], [-1]], ((0, ()), (1, ()), (2, ()))),  # not there
        ([[1], []], ((1, ()), (0, (0,)))),  # a later one
        ([[2], [], [1]], ((1, ()), (2, (0,)), (0, (1,)))),
        ([[1], [0]], ((0, ()), (1, (0,)))),  # a cycle: the order of the message
        ([[], [0, 0]], ((0, ()), (1, (0,)))),
    ],
)
def test_each_request_follows_those_that_it_needs(
    needs: list[list[int]], ordered: tuple[tuple[int, tuple[int, ...]], ...]
) -> None:
    assert order_requests(needs) == ordered
