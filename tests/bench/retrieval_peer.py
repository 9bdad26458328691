"""The half of `retrieval_peers.py` that runs bm25s, in an interpreter of its own. Standard library besides.

In comes a line of JSON: texts, queries and how many hits to give; out goes one: for each query the numbers of the best
texts, and the milliseconds of each query.
"""

import json
import sys
from time import perf_counter

import bm25s


def main() -> None:
    """Ranks with the defaults of bm25s, its English stop words left out as its documentation shows."""
    asked = json.loads(sys.stdin.readline())
    index = bm25s.BM25()
    index.index(bm25s.tokenize(asked["texts"], stopwords="en", show_progress=False), show_progress=False)
    ranked, times = [], []
    for query in asked["queries"]:
        start = perf_counter()
        tokens = bm25s.tokenize([query], stopwords="en", show_progress=False)
        found, scores = index.retrieve(tokens, k=min(asked["limit"], len(asked["texts"])), show_progress=False)
        times.append((perf_counter() - start) * 1000)
        ranked.append([int(at) for at, score in zip(found[0], scores[0], strict=True) if score > 0])
    print(json.dumps({"ranked": ranked, "ms": times}))


main()
