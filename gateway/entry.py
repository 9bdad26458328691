"""Where the `stepgate` command begins: Ctrl-C must not show a traceback, not even in the first moment."""

import sys

from gateway.loading import INTERRUPTED, Loading

# httpx brings a command line of its own, and loads pygments, rich and click for it: 2 MB that nothing here uses.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]


def main() -> None:
    """Load the command line and run it; Ctrl-C ends it without a word, unless the command has one to say."""
    try:
        with Loading():
            from gateway.cli import main as command  # noqa: PLC0415 - loading it is what may be interrupted
        command()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
