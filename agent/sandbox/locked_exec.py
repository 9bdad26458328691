"""Starts the interpreter's worker (`agent.sandbox.interpreter`) with no more rights than it needs.

The interpreter itself keeps programs from everything outside of it. Should it have a defect, its process has no
environment, another user, no files but itself and the C library, no network, and small limits.

`main` replaces this process. It imports the standard library only.
"""

import os
import resource
import signal
import sys
from contextlib import suppress

from agent.sandbox import kernel

_EXECUTE = 1
"""Landlock's right to execute a file, linux/landlock.h."""
_LIBRARIES = (
    "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
    "/lib64", "/usr/lib64", "/lib/ld-linux-aarch64.so.1",
)  # fmt: skip
_OPEN_FILES = 64
_STACK_BYTES = 64 * 2**20


def main(program: str, arguments: list[str]) -> None:
    """Locks this process and becomes `program`. Raises OSError if a lock that the kernel knows cannot be set."""
    descriptor = os.open(program, os.O_RDONLY)  # its folder may be closed to the other user
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, 2**16)
    os.chdir("/")
    kernel.set_limits(
        (
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_NOFILE, _OPEN_FILES),
            (resource.RLIMIT_STACK, _STACK_BYTES),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_MEMLOCK, 0),
        )
    )
    with suppress(OSError):  # forbidden in most containers
        if os.getuid() != 0:
            kernel.enter_user_namespace()
        kernel.unshare(kernel.NEW_NETWORK | kernel.NEW_IPC | kernel.NEW_UTS)
        kernel.leave_host_name()
    if kernel.get_landlock_version() > 0:
        libraries = [(path, kernel.READ | _EXECUTE) for path in _LIBRARIES]
        zones = ("/usr/share/zoneinfo", kernel.READ)
        kernel.restrict_files([(program, kernel.READ_FILE | _EXECUTE), zones, *libraries])
    kernel.drop_privileges()
    kernel.die_with_parent(signal.SIGKILL)
    os.execve(descriptor, [program, *arguments], {})  # noqa: S606 - a fixed program, without a shell


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
