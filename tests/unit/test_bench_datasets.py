"""The collections benchmarks read: BEIR's layout, ours, and lists of queries."""

import json
from pathlib import Path

import pytest

from tests.bench.datasets import read
from tests.bench.retrieval import Figures, evaluate


def write(path: Path, *rows: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def test_beir_s_layout_and_ours_say_the_same(tmp_path: Path) -> None:
    write(tmp_path / "beir" / "corpus.jsonl", {"_id": "d1", "title": "T", "text": "x"}, {"_id": "d2", "text": "y"})
    write(tmp_path / "beir" / "queries.jsonl", {"_id": "q1", "text": "a"}, {"_id": "q2", "text": "not judged"})
    qrels = tmp_path / "beir" / "qrels" / "test.tsv"
    qrels.parent.mkdir()
    qrels.write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n", "utf-8")
    write(tmp_path / "own" / "corpus.jsonl", {"doc_id": "d1", "title": "T", "text": "x"}, {"doc_id": "d2", "text": "y"})
    write(tmp_path / "own" / "queries.jsonl", {"query_id": "q1", "text": "a"})
    (tmp_path / "own" / "qrels.tsv").write_text("q1\td1\t2\n", "utf-8")
    beir, own = read(tmp_path / "beir"), read(tmp_path / "own")
    assert (beir.passages, beir.queries, beir.grades) == (own.passages, own.queries, own.grades)
    assert own.grades == {"q1": {"d1": 2.0}}


def test_a_list_of_queries_names_what_it_wants(tmp_path: Path) -> None:
    write(tmp_path / "corpus.jsonl", {"doc_id": "d1", "text": "x"})
    write(tmp_path / "asked.jsonl", {"query": "a", "relevant": ["d1"]}, {"query": "b", "expected_ids": "d1"})
    data = read(tmp_path / "asked.jsonl")
    assert (data.queries, len(data.passages)) == ({"0": "a", "1": "b"}, 1)
    assert read(tmp_path / "asked.jsonl", copies=3).passages[2].chunk_id == "d1.2"


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"neither qrels\.tsv"):
        read(tmp_path)
    write(tmp_path / "asked.jsonl", {"query": "a"})
    with pytest.raises(ValueError, match=r"corpus\.jsonl is not there"):
        read(tmp_path / "asked.jsonl")
    write(tmp_path / "corpus.jsonl", {"doc_id": "d1", "text": "x"})
    with pytest.raises(ValueError, match="no judged query"):
        read(tmp_path / "asked.jsonl")


@pytest.mark.row("S004-51")
async def test_every_figure_is_a_mean_over_the_queries(tmp_path: Path) -> None:
    write(
        tmp_path / "corpus.jsonl",
        *(
            {"doc_id": f"d{n}", "text": text}
            for n, text in enumerate(["red boat", "green car", "blue kite", "red kite"])
        ),
    )
    write(
        tmp_path / "asked.jsonl",
        {"query": "green car", "relevant": ["d1"]},
        {"query": "red kite", "relevant": ["d2"]},
        {"query": "volcano", "relevant": ["d0"]},
    )
    data = read(tmp_path / "asked.jsonl")
    figures: Figures = (await evaluate(data, None, ["lexical"]))["lexical"]
    told = figures.report(len(data.queries))
    assert told["mrr"] == pytest.approx((1 + 1 / 3) / 3)
    assert told["hit_rate@10"] == pytest.approx(2 / 3)
    assert told["recall@100"] == pytest.approx(2 / 3)
    assert told["nothing_above_0.7"] == pytest.approx(1 / 3)
