"""Compares what the sandbox needs with what this machine has. Changes nothing and starts nothing."""

import platform
import sys

from agent.sandbox.kernel import get_landlock_version, has_seccomp
from agent.sandbox.syscalls import MACHINES


def find_missing_feature() -> str | None:
    """The reason why this machine cannot sandbox programs, or None if it can."""
    if not sys.platform.startswith("linux"):
        return f"it needs Linux; this is {platform.system()}"
    if platform.machine() not in MACHINES:
        return f"it knows the system calls of {' and '.join(MACHINES)}; this is {platform.machine()}"
    if not has_seccomp():
        return "the kernel has no seccomp filters (CONFIG_SECCOMP_FILTER)"
    if get_landlock_version() == 0:
        return "the kernel has no Landlock (Linux 5.13 or later, with `landlock` in the boot option lsm=)"
    return None
