"""`python -m tests.soak --minutes N --seed S`: kill a gateway under load, and print what became of it.

The seed chooses requests, crash points and moments; what the machine does in between it cannot repeat. Exit code 1 with
the findings when anything accepted was lost, anything was done twice, or a log has a gap.
"""

import argparse
import asyncio
import random
import tempfile
from pathlib import Path

from tests.soak.killer import Soak, soak


def main() -> int:
    """Soak, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to kill")
    parser.add_argument("--seed", type=int, default=None, help="of an earlier soak, to repeat its choices")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="stepgate-soak-"))
    done = asyncio.run(soak(folder, seconds=60 * options.minutes, seed=seed, say=_say))
    _table(done)
    if not done.verdict.findings:
        return 0
    print(f"\n{len(done.verdict.findings)} findings; the data folder is kept: {folder}; again with --seed {seed}")
    for finding in done.verdict.findings:
        print(f"- {finding}")
    return 1


def _say(line: str) -> None:
    print(line, flush=True)


def _table(done: Soak) -> None:
    rows = {"lives of the gateway": done.lives}
    rows |= {f"killed {how}": count for how, count in sorted(done.deaths.items())}
    rows |= done.verdict.figures | {"findings": len(done.verdict.findings)}
    width = max(len(name) for name in rows)
    print()
    for name, figure in rows.items():
        print(f"{name.ljust(width)}  {figure:>7}")


if __name__ == "__main__":
    raise SystemExit(main())
