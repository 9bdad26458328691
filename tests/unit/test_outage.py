"""A trouble that lasts is told when it begins, now and then, and when it is over."""

import logging

import pytest

from agent.core.outage import REMIND_SECONDS, Outage

log = logging.getLogger("tests.outage")


def test_a_trouble_that_lasts_is_told_once_then_counted_and_its_end_is_told(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    trouble = Outage(log, "the store cannot be used", lambda: now[0])
    trouble.over()
    for _ in range(int(REMIND_SECONDS) + 50):
        trouble.met("connection refused", "ERR_STORE")
        now[0] += 1
    trouble.over()
    trouble.over()
    assert caplog.messages == [
        "the store cannot be used: connection refused",
        "the store cannot be used for 300 s, 301 times by now: connection refused",
        "over after 350 s, met 350 times: the store cannot be used",
    ]


def test_another_trouble_is_told_at_once_and_a_new_one_is_counted_anew(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Outage(log, "it fails", lambda: 0.0)
    for why, kind in (("refused", "ERR_STORE"), ("refused", "ERR_STORE"), ("disk full", "ERR_STORE_FULL")):
        trouble.met(why, kind)
    trouble.over()
    trouble.met("refused", "ERR_STORE")
    trouble.over()
    assert caplog.messages == [
        "it fails: refused",
        "it fails: disk full",
        "over after 0 s, met 3 times: it fails",
        "it fails: refused",
        "over after 0 s, met 1 times: it fails",
    ]
