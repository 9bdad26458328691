"""The peer's half of `ingestion.py`: MarkItDown reads files, in an interpreter of its own. Standard library besides.

Paths come in as a JSON list; out goes a line of JSON: seconds and characters by path, and the peak memory in KB.
"""

import json
import resource
import sys
from time import perf_counter

from markitdown import MarkItDown


def main() -> None:
    """Read each file `rounds` times; the quickest counts."""
    paths, rounds = json.load(sys.stdin)
    reader = MarkItDown(enable_plugins=False)
    told = {}
    for path in paths:
        best, size = 1e9, 0
        try:
            for _ in range(rounds):
                start = perf_counter()
                size = len(reader.convert(path).text_content)
                best = min(best, perf_counter() - start)
        except Exception as error:  # noqa: BLE001 - whatever it raises, it has not read the file
            print(f"{path}: {type(error).__name__}", file=sys.stderr)
            continue
        told[path] = [best, size]
    print(json.dumps({"files": told, "peak_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


main()
