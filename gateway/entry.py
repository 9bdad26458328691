"""Where the `stepgate` command begins: Ctrl-C must not show a traceback, not even in the first moment."""

import gc
import sys

from gateway.loading import INTERRUPTED, Loading

# httpx brings a command line of its own, and loads pygments, rich and click for it: 2 MB that nothing here uses.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]


def main() -> None:
    """Load the command line and run it; Ctrl-C ends it without a word, unless the command has one to say."""
    # Hardly anything that loading makes, or a turn, is in cycles: looking for them as often as Python does by itself
    # took a tenth of a start, and of a turn.
    gc.set_threshold(50_000, 20, 50)
    try:
        with Loading():
            from gateway.cli import main as command  # noqa: PLC0415 - loading it is what may be interrupted
        command()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
