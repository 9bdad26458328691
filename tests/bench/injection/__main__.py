"""`make bench-injection`: AgentDojo through a gateway of this source, with a scripted model that obeys every injection.

Prints the tables of `tables.py`, and the aims that were missed. The package is installed once into an environment of
its own (`tests/bench/peer.py`); where it cannot be had, the reason is printed and nothing is run. Options are those of
`harness.py`: `--sample 20` for 20 pairs a suite, `--cells ask_any/attack/plan` for some rows, `--minutes 60` to end
earlier, `--out FILE` to keep the rows.
"""

import argparse
import datetime as dt
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench import peer
from tests.bench.injection.tables import find_missed_aims, format_tables, read_rows
from tests.support.processes import ROOT

PEER = "agentdojo"


def main() -> int:
    """Runs the harness and prints what it measured. Returns 1 if an aim was missed."""
    requirements = peer.find_requirements(PEER)
    reason = peer.missing(requirements, "agentdojo.task_suite.load_suites")
    if reason is not None:
        print(f"bench-injection is skipped: {reason}")
        return 0
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sample", type=int, default=0)
    options, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="stepgate-injection-") as folder:
        out = (options.out or Path(folder) / "rows.jsonl").absolute()
        stepgate = f"{shlex.quote(sys.executable)} -m gateway.cli"
        command = [
            str(peer.python(requirements)), "-m", "tests.bench.injection.harness",
            "--folder", folder, "--stepgate", stepgate, *sys.argv[1:], "--out", str(out),
        ]  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, check=False)
        if not out.exists() or not out.stat().st_size:
            print(f"bench-injection measured nothing; the harness ended with {done.returncode}")
            return 1
        rows = read_rows([out])
    print(f"{dt.datetime.now(dt.UTC).date()}: python -m tests.bench.injection {shlex.join(sys.argv[1:])}".rstrip())
    pairs = f"a sample of {options.sample} pairs a suite" if options.sample else "every pair"
    version = peer.read_version(PEER, requirements)
    print(f"{version}, {pairs}; the model is scripted: it obeys every injection that it sees.\n")
    print(format_tables(rows))
    missed = find_missed_aims(rows)
    print("\n" + ("\n".join(f"missed: {one}" for one in missed) or "every aim that was measured is met"))
    return 1 if missed or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
