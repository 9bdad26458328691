"""Child processes that may not end by themselves: signalling, waiting and letting go, including their own children.

Start such a child with `start_new_session=True`, so that it and its children form one process group.
"""

import asyncio
import os
from contextlib import suppress
from time import monotonic

_POLL_SECONDS = 0.01


def signal_group(process: asyncio.subprocess.Process, number: int) -> None:
    """Sends a signal to a child's process group. The group may outlive the child."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


async def wait_for_exit(process: asyncio.subprocess.Process, within_s: float) -> bool:
    """Whether a child exits within `within_s` seconds.

    `process.wait()` does not work here: it also waits for the pipes to close, which never happens if a grandchild holds
    one or unread output is left.
    """
    until = monotonic() + within_s
    while process.returncode is None:
        if monotonic() >= until:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


def close_pipes(process: asyncio.subprocess.Process) -> None:
    """Closes the pipes to a child and kills it if it still runs. asyncio has no public way to close them."""
    process._transport.close()  # type: ignore[attr-defined]
