"""What all tests share: next to nothing."""

import atexit
import gc
import os
import signal
import ssl
from collections.abc import Callable, Iterator
from functools import cache

import httpx._transports.default
import httpx2._transports.default
import pytest
from hypothesis import HealthCheck, settings

from agent.core import containers

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


def _kept(make: Making) -> Making:
    @cache
    def usual(trust_env: bool, *_: str | None) -> ssl.SSLContext:
        return make(verify=True, cert=None, trust_env=trust_env)

    def made(verify: ssl.SSLContext | str | bool = True, cert: object = None, trust_env: bool = True) -> ssl.SSLContext:
        if verify is True and cert is None:
            return usual(trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        return make(verify=verify, cert=cert, trust_env=trust_env)

    return made
