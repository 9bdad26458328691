"""The eight queries of the example company: every retrieval mode is measured on them."""

import json
import sys
from pathlib import Path
from typing import get_args

import pytest

from agent.core.models import RetrievalMode
from gateway.features.documents.engine.ingest.corpus_mapping import load_mapping
from gateway.features.documents.engine.ingest.corpus_prepare import prepare
from gateway.features.documents.engine.search.vector_search import format_passage_text
from gateway.packaged_files import PACKAGE_ROOT
from tests.bench.datasets import read
from tests.bench.lsa import LsaEmbedder
from tests.bench.retrieval import evaluate
from tests.support.processes import start

EXAMPLES = PACKAGE_ROOT / "config" / "examples"


@pytest.mark.row("S004-51")
async def test_the_example_queries_are_measured_in_every_mode(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    for name in ("tickets", "incidents"):
        made = tmp_path / f"{name}.jsonl"
        prepare(load_mapping(EXAMPLES / "mappings" / f"{name}.yaml"), [EXAMPLES / "company" / f"{name}.csv"], made)
        with corpus.open("a") as whole:
            whole.write(made.read_text())
    data = read(EXAMPLES / "company" / "queries.jsonl", corpus=corpus)
    known = {json.loads(line)["doc_id"] for line in corpus.read_text().splitlines()}
    assert len(data.queries) == 8
    assert {document for grades in data.grades.values() for document in grades} <= known

    embedder = LsaEmbedder([format_passage_text(passage) for passage in data.passages])
    found = await evaluate(data, embedder, ("lexical", "vector", "hybrid_rerank"))
    reports = {mode: figures.report(len(data.queries)) for mode, figures in found.items()}
    for mode in ("lexical", "hybrid_rerank"):
        assert reports[mode]["hit_rate@10"] == 1.0, reports
        assert float(reports[mode]["mrr"]) > 0.8, reports
    assert float(reports["vector"]["hit_rate@10"]) >= 0.75, reports


@pytest.mark.row("S004-51")
def test_the_command_prints_a_table_of_the_modes_and_writes_a_report(tmp_path: Path) -> None:
    corpus, report = tmp_path / "corpus.jsonl", tmp_path / "report.json"
    for name in ("tickets", "incidents"):
        made = tmp_path / f"{name}.jsonl"
        prepare(load_mapping(EXAMPLES / "mappings" / f"{name}.yaml"), [EXAMPLES / "company" / f"{name}.csv"], made)
        with corpus.open("a") as whole:
            whole.write(made.read_text())
    environment = {
        "EVAL_DATASET": str(EXAMPLES / "company" / "queries.jsonl"),
        "EVAL_CORPUS": str(corpus),
        "EVAL_EMBEDDER": "lsa",
        "EVAL_PEERS": "off",
        "EVAL_REPORT": str(report),
    }
    measuring = start([sys.executable, "-m", "tests.bench.retrieval"], environment=environment)
    assert measuring.wait(120) == 0, measuring.output
    modes = json.loads(report.read_text())["modes"]
    assert modes.keys() == {*get_args(RetrievalMode)}, "each beside the others"
    for mode, figures in modes.items():
        assert any(line.startswith(f"{mode} ") for line in measuring.output), mode
        assert {"hit_rate@10", "recall@100", "mrr", "ms_p50"} <= set(figures)
        assert 0 < figures["mrr"] <= 1, mode
