"""Equations of an answer with expressions on both sides."""

# ruff: noqa: RUF001 - signs of multiplication and subtraction are meant

import pytest

from agent.answers.figures import find_unexplained_figures

EVIDENCE = "Prices: 17.50 each, 240 pieces, VAT 25 %, 16 boxes of 10, discount of 40"


@pytest.mark.parametrize(
    "answer",
    [
        "10 × 24 = 200 + 40",
        "10 × 16 = 320 / 2",
        "10 × 16 = 200 − 40",
        "240 × 17.5 = 240 × 17 + 240 × 0.5 = 4,080 + 120 = 4,200",
        "240 : 16 = 15",
        "Total 2025 : 240 × 17.5 = 4,200",
        "17.5² = 306.25",
        "2^10 = 1024",
        "√16 = 4",
        "1/3 + 1/4 = 7/12",
        "-5 + 240 = 235",
        "25 % of 240 = 60",
        "25 % von 240 = 60",
        "25 % av 240 = 60",
        "25 % de 240 = 60",
        "(17.5 × 240) × 1.25 = 5,250",
        "VAT = 0.25 × 240 = 60",
        "17.5 × 240 = 4,200 - so much for the pieces",
    ],
)
def test_both_sides_are_computed(answer: str) -> None:
    evidence = EVIDENCE + ("; 24 days, 2025" if "24 " in answer or "2025" in answer else "")
    assert find_unexplained_figures(answer, evidence) == []


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("17.5 × 240 = 4,500", "4,500"),
        ("240 : 16 = 17", "17"),
        ("17.5² = 356.25", "356.25"),
        ("25 % of 240 = 70", "70"),
        ("16 × 10 = 480 / 2", "480"),
        ("240 × 17.5 = 240 × 17 + 130", "130"),
        ("10 × 16 = 190 − 40", "190"),
    ],
)
def test_a_wrong_side_is_marked(answer: str, wrong: str) -> None:
    assert wrong in find_unexplained_figures(answer, EVIDENCE)


def test_a_power_that_no_float_holds_is_left() -> None:
    assert find_unexplained_figures("240^240^240 = 79", EVIDENCE) == ["79"]
