"""Aggregates of the tables of the evidence, and figures with those of the period before."""

import json
import time

import pytest

from agent.answers.figures import find_unexplained_figures
from tests.support.figure_answers import read_answers

ORDERS = """order;customer;product;qty;price;state
101;Birch;Desk;3;249,00;shipped
102;Alder;Chair;12;89,50;open
103;Birch;Lamp;25;31,20;open
104;Rowan;Chair;8;89,50;cancelled
105;Alder;Desk;2;249,00;shipped"""
SALES = json.dumps(
    {
        "rows": [
            {"region": "North", "q1": 1240, "q2": 1385, "q3": 1190, "q4": 1502},
            {"region": "South", "q1": 980, "q2": 1020, "q3": 1105, "q4": 1210},
            {"region": "East", "q1": 1530, "q2": 1475, "q3": 1610, "q4": 1725},
        ]
    }
)
BUDGET = '{"items":[{"n":"Rent","v":1200},{"n":"Food","v":450},{"n":"Car","v":310},{"n":"Phone","v":39}],"income":2900}'
REPORT = (
    "Annual report 2023. Net sales SEK 4,812 million (4,236). Operating profit SEK 611 million (498). Earnings per "
    "share SEK 7.42 (5.96). Employees 2,318 (2,204). Dividend SEK 3.50 (3.00). Net debt SEK 1,105 million (1,390)."
)


@pytest.mark.parametrize(
    ("evidence", "true", "invented"),
    [
        (ORDERS, "The open orders are worth 1,854.00.", "The open orders are worth 1,584.00."),
        (ORDERS, "Alle Bestellungen zusammen: 3.815,00 €.", "Alle Bestellungen zusammen: 3.518,00 €."),
        (ORDERS, "Without the cancelled one the orders come to 3,099.00.", "Without it they come to 3,909.00."),
        (ORDERS, "The median price is 89.50, the range 217.80.", "The median price is 98.40."),
        (SALES, "In total, 15,972 units were sold.", "In total, 15,792 units were sold."),
        (SALES, "Totalt såldes 15 972 enheter.", "Totalt såldes 15 792 enheter."),
        (SALES, "The second half brought 8,342 units, the first 7,630.", "The second half brought 8,432 units."),
        (SALES, "East accounts for 39.7 % of the total.", "East accounts for 37.9 % of the total."),
        (SALES, "North fell by 14.1 % from Q2 to Q3.", "North fell by 11.4 % from Q2 to Q3."),
        (SALES, "The gap between the best and the worst region is 2,025 units.", "The gap is 2,520 units."),
        (BUDGET, "You spend 1,999 and 901 are left.", "You spend 1,999 and 910 are left."),
        (BUDGET, "Rent takes 41 % of your income.", "Rent takes 47 % of your income."),
        (BUDGET, "Im Jahr sind das 23.988 €.", "Im Jahr sind das 28.938 €."),
        (BUDGET, "Sans le loyer, il faut 799 €.", "Sans le loyer, il faut 979 €."),
        (REPORT, "Net sales rose by 13.6 % to SEK 4.8 billion.", "Net sales rose by 16.3 % to SEK 4.8 billion."),
        (REPORT, "EPS grew by 24.5 % to SEK 7.42.", "EPS grew by 25.4 % to SEK 7.42."),
        (REPORT, "Die Marge stieg um 0,9 Prozentpunkte auf 12,7 %.", "Die Marge stieg auf 17,2 %."),
        (REPORT, "Sales per employee are SEK 2.08 million.", "Sales per employee are SEK 2.80 million."),
        (REPORT, "Under 2022 var omsättningen 4 236 miljoner.", "Under 2020 var omsättningen 4 236 miljoner."),
    ],
)
def test_an_aggregate_is_explained_and_another_figure_is_not(evidence: str, true: str, invented: str) -> None:
    assert find_unexplained_figures(true, evidence) == []
    assert find_unexplained_figures(invented, evidence)


def test_answers_to_an_office() -> None:
    pairs = read_answers("figure_desk")
    marked = [pair.true for pair in pairs if find_unexplained_figures(pair.true, pair.evidence)]
    missed = [pair.invented for pair in pairs if not find_unexplained_figures(pair.invented, pair.evidence)]
    assert len(marked) <= 0.04 * len(pairs), marked
    assert len(missed) <= 0.03 * len(pairs), missed


@pytest.mark.parametrize(
    "evidence",
    [
        "[" * 100_000,
        "{\n" * 50_000,
        "|1|2\n" * 30_000,
        ",".join(map(str, range(20_000))) + "\n" + ",".join(map(str, range(7, 20_007))) + "\n1,2",
        "Sales were 12 (11), up. " * 10_000,
        json.dumps([{"a": f"x{row % 50}", "b": row, "c": 3 * row} for row in range(5_000)]),
    ],
    ids=["brackets", "braces", "pipes", "wide", "pairs", "long"],
)
def test_large_evidence_takes_bounded_time(evidence: str) -> None:
    start = time.process_time()
    find_unexplained_figures("North sold 12,345 units, 17.3 % of all; South 45,678 and East 23,456.", evidence)
    assert time.process_time() - start < 12


@pytest.mark.parametrize("answer", ["1E400", "about 1E400 m", "1E100 of 2E100", "12 (1E400)"])
@pytest.mark.parametrize("evidence", ['{"a":1e400,"b":2,"c":3}', "a;b\n1E400;2\n3;4\n5;6", "SEK 1E400 (12)", "5 cents"])
def test_figures_that_no_float_holds_raise_nothing(answer: str, evidence: str) -> None:
    find_unexplained_figures(answer, evidence)
