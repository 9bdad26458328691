"""Questions that compare are taken apart; others are left alone."""

import pytest

from gateway.features.documents.engine.comparisons import build_search_args, parse_comparison


@pytest.mark.row("S003-33")
@pytest.mark.parametrize(
    ("question", "queries"),
    [
        ("Compare X and Y", ["X", "Y"]),
        ("Please compare the train with the bus.", ["train", "bus"]),
        ("compare the rules of Sweden and Norway", ["the rules of Sweden", "the rules of Norway"]),
        ("What is the difference between sick leave and parental leave?", ["sick leave", "parental leave"]),
        ("How does sick leave differ from parental leave?", ["sick leave", "parental leave"]),
        ("Compare A, B and C as a table", ["A", "B", "C"]),
        ("holidays vs travel", ["holidays", "travel"]),
        ("J\u00e4mf\u00f6r semester och tj\u00e4nsteresor", ["semester", "tj\u00e4nsteresor"]),
        ("Compare the price of the train and the price of the bus", ["price of the train", "price of the bus"]),
        ("Compare the warranty of the Atlas 300 and the Borealis 200",
         ["the warranty of Atlas 300", "the warranty of Borealis 200"]),
        ("What is the price difference between a berth for members and for guests?",
         ["a berth for members", "a berth for guests"]),
        ("Compare the warranty of the Atlas 300 and the parental leave",
         ["warranty of the Atlas 300", "parental leave"]),
    ],
)  # fmt: skip
def test_each_side_is_looked_up(question: str, queries: list[str]) -> None:
    assert [topic.query for topic in parse_comparison(question)] == queries


@pytest.mark.parametrize(
    "question",
    [
        "How many days of holiday?", "Is the train or the bus paid for?", "Compare everything", "Compare A, B, C, D, E",
        "", "compare", "compare and", "vs", "compare " + "a and " * 400, "Who approves holidays and travel?",
    ],
)  # fmt: skip
def test_what_compares_nothing(question: str) -> None:
    assert parse_comparison(question) == ()


def test_a_request_may_name_the_collection() -> None:
    assert build_search_args({"collection": "work"}, "q") == {"query": "q", "collection": "work"}
    assert build_search_args({"collection": 3}, "q") == {"query": "q"}
