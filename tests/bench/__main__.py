"""`make bench`: every table. `python -m tests.bench turn` runs one."""

import asyncio
import sys
from collections.abc import Callable

from tests.bench import cold_start, makespan, turn

TABLES: dict[str, Callable[[], None]] = {
    "cold": cold_start.main,
    "turn": lambda: asyncio.run(turn.main()),
    "makespan": lambda: asyncio.run(makespan.main()),
}

if __name__ == "__main__":
    wanted = sys.argv[1:] or list(TABLES)
    for name in wanted:
        if name not in TABLES:
            sys.exit(f"no such table: {name}; there are {', '.join(TABLES)}")
        TABLES[name]()
