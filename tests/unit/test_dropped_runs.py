"""When runs are resumed that a process had to drop."""

from agent.runs.dropped_runs import DroppedRuns


def _make() -> tuple[DroppedRuns, list[float]]:
    now = [0.0]
    return DroppedRuns(first_s=1, longest_s=30, clock=lambda: now[0]), now


def test_a_run_that_is_dropped_again_and_again_waits_twice_as_long_each_time() -> None:
    dropped, now = _make()
    waited = []
    for _ in range(8):
        dropped.add("r")
        began = now[0]
        while not dropped.list_due():
            assert dropped.is_early("r")
            now[0] += 0.5
        waited.append(now[0] - began)
        dropped.record_resumed("r")
        assert not dropped.list_due()
    assert waited == [0, 1, 2, 4, 8, 16, 30, 30]


def test_a_run_that_has_worked_for_long_is_due_at_once_again() -> None:
    dropped, now = _make()
    for _ in range(3):
        dropped.add("r")
        dropped.record_resumed("r")
    now[0] += 61
    dropped.add("r")
    assert dropped.list_due() == ["r"]


def test_runs_wait_each_for_itself() -> None:
    dropped, _ = _make()
    dropped.add("once")
    dropped.add("twice")
    dropped.record_resumed("twice")
    dropped.add("twice")
    assert dropped.list_due() == ["once"]
    assert dropped.is_early("twice")
    assert not dropped.is_early("once")
    assert not dropped.is_early("never")
