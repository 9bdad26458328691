"""Collections with judged queries, as the benchmarks read them: BEIR's folders, plain ones, and lists of queries."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.features.documents.engine.search.lexical import Passage
from tests.bench.json_lines import read_json_lines

_IDS = ("_id", "doc_id", "query_id", "id")
_TEXTS = ("text", "query", "question")
_WANTED = ("relevant", "relevant_ids", "relevant_doc_ids", "expected", "expected_ids", "expected_doc_ids", "doc_ids")


@dataclass(frozen=True)
class Dataset:
    """Passages, queries by id, and judgements: query id to document id to grade, all above zero."""

    name: str
    passages: list[Passage]
    queries: dict[str, str]
    grades: dict[str, dict[str, float]]


def read(place: Path, *, corpus: Path | None = None, copies: int = 1) -> Dataset:
    """A dataset; queries without a judgement are left out. `ValueError` says what is missing.

    A folder holds `corpus.jsonl`, `queries.jsonl` and `qrels.tsv` (or BEIR's `qrels/test.tsv`). A file of queries holds
    `{"query": ..., "relevant": [document ids]}` a line; its corpus is `corpus`, or `corpus.jsonl` beside it."""
    if place.is_dir():
        judged = next((p for p in (place / "qrels.tsv", place / "qrels" / "test.tsv") if p.is_file()), None)
        if judged is None:
            raise ValueError(f"{place} has neither qrels.tsv nor qrels/test.tsv")
        rows = [(_first(row, _IDS), _first(row, _TEXTS)) for row in _rows(place / "queries.jsonl")]
        grades = _qrels(judged)
    else:
        asked = list(_rows(place))
        rows = [(str(row.get("query_id") or row.get("id") or n), _first(row, _TEXTS)) for n, row in enumerate(asked)]
        wanted = [_ids(row) for row in asked]
        grades = {name: dict.fromkeys(ids, 1.0) for (name, _), ids in zip(rows, wanted, strict=True) if ids}
    held = corpus or (place if place.is_dir() else place.parent) / "corpus.jsonl"
    passages = [
        Passage(f"{name}.{copy}", name, str(row.get("title") or ""), str(row.get("text") or ""), {"copy": copy})
        for copy in range(copies)
        for row in _rows(held)
        for name in (_first(row, _IDS),)
    ]
    queries = {name: text for name, text in rows if name in grades}
    if not queries:
        raise ValueError(f"{place} has no judged query")
    return Dataset(place.stem, passages, queries, grades)


def _qrels(path: Path) -> dict[str, dict[str, float]]:
    """`query document grade`, with BEIR's heading or without; four columns are TREC's."""
    grades: dict[str, dict[str, float]] = {}
    for line in path.read_text("utf-8").splitlines():
        cells = line.split("\t") if "\t" in line else line.split()
        if len(cells) < 3 or not cells[-1].lstrip("-").replace(".", "", 1).isdigit() or float(cells[-1]) <= 0:
            continue
        grades.setdefault(cells[0], {})[cells[-2]] = float(cells[-1])
    return grades


def _ids(row: dict[str, Any]) -> list[str]:
    held: Any = next((row[name] for name in _WANTED if row.get(name)), [])
    return [str(one) for one in (held if isinstance(held, list) else [held])]


def _first(row: dict[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        if row.get(name) is not None:
            return str(row[name])
    raise ValueError(f"a row has none of {', '.join(names)}: {str(row)[:200]}")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        raise ValueError(f"{path} is not there")
    yield from read_json_lines(path)
