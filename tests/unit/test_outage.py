"""A trouble that lasts is told when it begins, now and then, and when it is over."""

import asyncio
import logging

import pytest

from agent.core.errors import StoreError
from agent.core.throttled_log import REMIND_SECONDS, ThrottledLog

log = logging.getLogger("tests.outage")


def test_a_trouble_that_lasts_is_told_once_then_counted_and_its_end_is_told(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    trouble = ThrottledLog(log, "the store cannot be used", lambda: now[0])
    trouble.record_recovery()
    for _ in range(int(REMIND_SECONDS) + 50):
        trouble.record_failure("connection refused", "ERR_STORE")
        now[0] += 1
    trouble.record_recovery()
    trouble.record_recovery()
    assert caplog.messages == [
        "the store cannot be used: connection refused",
        "the store cannot be used for 300 s, 301 times so far: connection refused",
        "recovered after 350 s and 350 failures: the store cannot be used",
    ]


def test_no_failure_ends_a_guarded_loop_and_a_defect_is_told_with_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    trouble = ThrottledLog(log, "it fails", lambda: 0.0)
    for error in (StoreError("disk gone"), KeyError("x"), KeyError("x"), None):
        with trouble.guard():
            if error is not None:
                raise error
    assert caplog.messages == [
        "it fails: disk gone",
        "it fails: an internal error: KeyError('x')",
        "recovered after 0 s and 3 failures: it fails",
    ]
    assert [record.exc_info is not None for record in caplog.records] == [False, True, False]
    with pytest.raises(asyncio.CancelledError), trouble.guard():
        raise asyncio.CancelledError


def test_another_trouble_is_told_at_once_and_a_new_one_is_counted_anew(caplog: pytest.LogCaptureFixture) -> None:
    trouble = ThrottledLog(log, "it fails", lambda: 0.0)
    for why, kind in (("refused", "ERR_STORE"), ("refused", "ERR_STORE"), ("disk full", "ERR_STORE_FULL")):
        trouble.record_failure(why, kind)
    trouble.record_recovery()
    trouble.record_failure("refused", "ERR_STORE")
    trouble.record_recovery()
    assert caplog.messages == [
        "it fails: refused",
        "it fails: disk full",
        "recovered after 0 s and 3 failures: it fails",
        "it fails: refused",
        "recovered after 0 s and 1 failures: it fails",
    ]
