"""Entry point of the `stepgate` command. Ctrl-C never prints a traceback, not even during start-up."""

import gc
import sys

from gateway.quiet_interrupt import INTERRUPTED_EXIT_CODE, QuietInterrupt

# httpx imports pygments, rich and click for its own command line: 2 MB that nothing here uses.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]


def main() -> None:
    """Imports the command line and runs it."""
    # Imports and requests create few reference cycles: at Python's default thresholds the garbage collector took a
    # tenth of the start and of each request (docs/adr/0007-notes-and-model-calls.md).
    gc.set_threshold(50_000, 20, 50)
    try:
        with QuietInterrupt():
            from gateway.garbage_collector import pause_garbage_collector  # noqa: PLC0415 - may be interrupted

            with pause_garbage_collector():
                from gateway.cli import main as command  # noqa: PLC0415 - may be interrupted
        command()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED_EXIT_CODE) from None
    finally:
        # At its end the interpreter searches all it holds for reference cycles, several times: a quarter of a short
        # command. Frozen objects are not searched.
        gc.freeze()
