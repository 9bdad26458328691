"""What all tests share: next to nothing."""

import atexit
import faulthandler
import gc
import os
import signal
import sqlite3
import ssl
from collections.abc import Callable, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any

import httpx._transports.default
import httpx2._transports.default
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings

from agent.core import containers
from agent.sandbox.probe import find_missing_feature
from agent.skills import Skill, library
from agent.skills.parse import read_skill
from agent.storage import sqlite
from gateway.packaged_files import PACKAGE_ROOT
from tests.support.stuck_workers import StuckWorkers

# How long an example takes is the machine's business: on a busy one it would be a failure that says nothing.
settings.register_profile("stepgate", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("stepgate")

# As the gateway's own entry sets it. A process of tests holds half a gigabyte, which Python's default thresholds have
# searched again and again: a seventh of its processor time.
gc.set_threshold(50_000, 20, 50)
# At its end the interpreter would search all that the tests have left, several times.
atexit.register(gc.freeze)

# Scripted models reply as a capable one does; tests of what small models need say so (`model_profile="small"`).
os.environ.setdefault("AGENT_MODEL_PROFILE", "capable")
# No test may ask programs that happen to run on this machine; the gateways that tests start inherit it.
os.environ.setdefault("AGENT_DISCOVER", "off")
# Texts differ in a container, where tests may run; tests of that say so.
containers.CONTAINER_FILES = ()

# A background job of a shell starts with SIGINT ignored, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

Making = Callable[..., ssl.SSLContext]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A machine without namespaces has no sandbox to test."""
    if item.get_closest_marker("sandbox") is not None and (missing := find_missing_feature()) is not None:
        pytest.skip(f"this machine has no sandbox: {missing}")


def pytest_configure(config: pytest.Config) -> None:
    """The process that hands out tests to workers watches that they come to an end."""
    if config.getoption("numprocesses", None):
        config.pluginmanager.register(StuckWorkers(limit_s=600))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Once a test has failed, pytest no longer watches how long it takes (`faulthandler_timeout`), and ending what it
    has started may hang."""
    limit_s = float(item.config.getini("faulthandler_timeout"))
    if limit_s > 0:  # 0 switches it off
        faulthandler.dump_traceback_later(limit_s, exit=True, file=item.config.stash[fault_handler_stderr_fd_key])


def pytest_collection_finish() -> None:
    """Modules and thousands of tests stay until the end: no search for reference cycles has to walk through them."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _certificates_read_once() -> Iterator[None]:
    """A client of httpx reads 140 certificates when it is made, which takes 30 ms of processor time; tests make
    thousands, nearly all of them for `http://127.0.0.1`. Those that ask for the same certificates share them."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (httpx._transports.default, httpx2._transports.default):
            patch.setattr(module, "create_ssl_context", _kept(module.create_ssl_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def _disk_not_waited_for() -> Iterator[None]:
    """A store waits for the disk several times when it is made and when it is closed, so that it outlives a power
    failure. No test shows one: what a process has written stays when it is killed."""

    def unsynced(step: Callable[[sqlite3.Connection], Any]) -> Callable[[sqlite3.Connection], Any]:
        @wraps(step)
        def run(connection: sqlite3.Connection) -> Any:
            connection.execute("PRAGMA synchronous=OFF")
            result = step(connection)
            connection.execute("PRAGMA synchronous=OFF")
            return result

        return run

    with pytest.MonkeyPatch.context() as patch:
        for step in (sqlite._create_tables, sqlite._configure):
            patch.setattr(sqlite, step.__name__, unsynced(step))
        yield


@pytest.fixture(scope="session", autouse=True)
def _shipped_skills_read_once() -> Iterator[None]:
    """Thousands of engines and gateways load the same skills; those of a test's own are read each time."""
    shipped = PACKAGE_ROOT / "skills"
    read_each_time = read_skill
    read_once = cache(read_each_time)

    def read(path: Path, origin: str = "shipped") -> Skill | str:
        return read_once(path, origin) if path.is_relative_to(shipped) else read_each_time(path, origin)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "read_skill", read)
        yield


def _kept(make: Making) -> Making:
    @cache
    def usual(trust_env: bool, *_: str | None) -> ssl.SSLContext:
        return make(verify=True, cert=None, trust_env=trust_env)

    def made(verify: ssl.SSLContext | str | bool = True, cert: object = None, trust_env: bool = True) -> ssl.SSLContext:
        if verify is True and cert is None:
            return usual(trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        return make(verify=verify, cert=cert, trust_env=trust_env)

    return made
