"""What the Python scripts share: each check runs with warnings as errors and prints one line of JSON."""

import asyncio
import gc
import inspect
import json
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

MODEL = os.environ.get("STEPGATE_URL", "")
"""A gateway with a scripted model behind it."""
RULES = os.environ.get("STEPGATE_RULES_URL", "")
"""A gateway without a model."""
SUM = "What is 2*21?"
WEATHER = "What is the weather in Lund?"
TOOL_RESULT = "12 degrees"
ADA = "I am Ada-Marie."
PERSON = "Invent a person."

_CHECKS: list[tuple[str, Callable[[], Any]]] = []


def check(title: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Registers a function, asynchronous or not, as a check of this title."""

    def register(function: Callable[[], Any]) -> Callable[[], Any]:
        _CHECKS.append((title, function))
        return function

    return register


def run_checks(*own_warnings: str) -> None:
    """Runs every check and ends the process; its exit code tells whether all succeeded.

    `own_warnings` are beginnings of warnings that the client shows whatever the endpoint sends.
    """
    failed = 0
    with asyncio.Runner() as runner:  # one loop, because clients keep connections for later calls
        for title, function in _CHECKS:
            problem = _run(function, runner, own_warnings)
            failed += problem is not None
            print(json.dumps({"check": title, "problem": problem}), flush=True)
    sys.exit(1 if failed else 0)


class _Collected(logging.Handler):
    """Keeps what libraries log as a warning or worse."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(f"{record.name}: {record.getMessage()}")


def _run(function: Callable[[], Any], runner: asyncio.Runner, own_warnings: tuple[str, ...]) -> str | None:
    """Returns what went wrong, or None. A warning that is logged or shown by a destructor counts too."""
    logged = _Collected()
    logging.getLogger().addHandler(logged)
    unraisable: list[str] = []
    sys.unraisablehook = lambda raised: unraisable.append(f"{raised.object!r}: {raised.exc_value!r}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ResourceWarning)  # when a client closes its connections is its own affair
            for beginning in own_warnings:
                warnings.filterwarnings("ignore", beginning)
            result = function()
            if inspect.iscoroutine(result):
                runner.run(result)
            gc.collect()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result of the check
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"[:600]
    finally:
        logging.getLogger().removeHandler(logged)
    problems = [*logged.messages, *unraisable]
    return "; ".join(problems)[:600] or None


def equal(actual: Any, expected: Any) -> None:
    """Raises AssertionError with both values unless they are equal."""
    assert actual == expected, f"{actual!r} is not {expected!r}"


def contains(actual: Any, expected: Any) -> None:
    """Raises AssertionError with both values unless the one holds the other."""
    assert expected in actual, f"{expected!r} is not in {actual!r}"
