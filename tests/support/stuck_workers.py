"""Ends the workers of a test run in which nothing happens any more, so that it goes on and names the test that hung.

`faulthandler_timeout` watches a test from within its process. What that misses (a timer that something cancelled, a
worker that waits between two tests) would hold up the whole run until somebody stops it, and nothing would say why.
"""

import os
import signal
import sys
import threading
import time
from typing import Any

import pytest


class StuckWorkers:
    """A plugin of the process that hands out the tests: aborts all workers after `limit_s` seconds without a report.

    An aborted worker writes the stacks of its threads to stderr; its test fails, and another worker runs the rest.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._last_event = time.monotonic()
        self._running: set[str] = set()
        self._workers: dict[str, int] = {}
        self._ended = threading.Event()

    def pytest_sessionstart(self) -> None:
        threading.Thread(target=self._watch, name="stuck-workers", daemon=True).start()

    def pytest_sessionfinish(self) -> None:
        self._ended.set()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        self._last_event = time.monotonic()
        self._workers[node.gateway.id] = node.gateway._io.popen.pid  # execnet has no public name for it

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._last_event = time.monotonic()
        self._workers.pop(node.gateway.id, None)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._last_event = time.monotonic()
        self._running.add(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._last_event = time.monotonic()
        self._running.discard(nodeid)

    def _watch(self) -> None:
        while not self._ended.wait(self._limit_s / 20):
            if time.monotonic() - self._last_event > self._limit_s:
                self._abort()
                self._last_event = time.monotonic()

    def _abort(self) -> None:
        tests = ", ".join(self._running) or "no test"
        print(f"\nNothing has ended for {self._limit_s:g} s; running: {tests}. Aborting the workers.", file=sys.stderr)
        self._running.clear()
        for pid in list(self._workers.values()):
            os.kill(pid, signal.SIGABRT)
