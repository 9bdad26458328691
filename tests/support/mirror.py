"""A process that tells what it is: `python -m tests.support.mirror [exit N | signal N | sleep]`, for the tests of how
tests start processes. It prints a JSON line, then one line to stderr, then what it read on standard input."""

import json
import os
import sys
import time
from pathlib import Path


def main() -> None:
    """Tell, then end as asked."""
    told = {
        "argv": sys.argv[1:],
        "pid": os.getpid(),
        "leads": os.getpgid(0) == os.getpid(),
        "cwd": str(Path.cwd()),
        "path": sys.path[0],
        "environment": {key: value for key, value in os.environ.items() if key.startswith(("AGENT_", "MIRROR_"))},
        "name": __name__,
        "tz": time.tzname[0],
    }
    print(json.dumps(told), flush=True)
    print("to stderr", file=sys.stderr)
    match sys.argv[1:]:
        case ["exit", code]:
            raise SystemExit(int(code))
        case ["signal", number]:
            os.kill(os.getpid(), int(number))
        case ["sleep"]:
            time.sleep(60)
        case ["raise"]:
            raise KeyboardInterrupt
        case _:
            print(sys.stdin.read(), end="")


if __name__ == "__main__":
    main()
