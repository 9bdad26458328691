"""Child processes that nobody trusts to end: told of, waited for and let go, with whatever they have started.

A child is started with `start_new_session=True`, so that it and its own children are one group.
"""

import asyncio
import os
from contextlib import suppress
from time import monotonic

_LOOK_SECONDS = 0.01


def signal_group(process: asyncio.subprocess.Process, number: int) -> None:
    """Send a signal to a child and what it has started; these may live on when it has ended."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


async def has_ended(process: asyncio.subprocess.Process, within_s: float) -> bool:
    """Whether a child ends within so many seconds. Not `process.wait()`: that waits for the pipes too, whose end never
    comes where a grandchild holds one, or where more stands in one than anybody reads."""
    until = monotonic() + within_s
    while process.returncode is None:
        if monotonic() >= until:
            return False
        await asyncio.sleep(_LOOK_SECONDS)
    return True


def close_pipes(process: asyncio.subprocess.Process) -> None:
    """Let go of what still connects us to a child, which is killed if it lives. Nothing public closes the pipes."""
    process._transport.close()  # type: ignore[attr-defined]
