"""Limits a worker process: memory, time, no network, no core dumps. Called once, before any file is opened."""

import ctypes
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path

_NEW_NETWORK = 0x40000000
_NEW_USER = 0x10000000
"""Flags of unshare(2). A new network namespace has no interface."""

_GRACE_SECONDS = 5
_PAGE = resource.getpagesize()


def leave_network() -> bool:
    """Cuts this process off from every network if the kernel allows it (Linux). Must run before threads start."""
    if not sys.platform.startswith("linux"):
        return False
    unshare: Callable[[int], int] = ctypes.CDLL(None).unshare
    # A user namespace takes root its power over other users' files, so it is tried second.
    return unshare(_NEW_NETWORK) == 0 or unshare(_NEW_USER | _NEW_NETWORK) == 0


def limit_memory(allowed: int) -> None:
    """Lets this process use `allowed` more bytes of address space than now."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ceiling = _compute_address_space() + allowed
    resource.setrlimit(resource.RLIMIT_AS, (ceiling, ceiling))


def limit_time(seconds: float) -> None:
    """Ends this process a little after `seconds` by SIGALRM, also in native code, if its parent cannot. 0 lifts the
    limit."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(seconds) + _GRACE_SECONDS if seconds > 0 else 0)


def _compute_address_space() -> int:
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * _PAGE
    except OSError:  # no /proc: macOS, whose kernel ignores this limit anyway
        return 2**31
