"""Which figures of an answer stand nowhere in its evidence, and which a writer may honestly have worked out."""

import time

import pytest

from agent.execution.figures import asks_to_invent, invented_numbers, unexplained_figures


@pytest.mark.parametrize(
    ("text", "evidence", "invented"),
    [
        ("revenue of 98765 and 12", "12 in all", ["98765"]),
        ("1,250 euros", "1250 euros", []),
        ("12.5 % of 40", "12.5 and 40", []),
        ("1. first 2. second 3. third", "", []),
        ("77 and 77 and 88", "", ["77", "88"]),
    ],
)
def test_figures_without_evidence_are_noticed(text: str, evidence: str, invented: list[str]) -> None:
    assert invented_numbers(text, evidence) == invented


@pytest.mark.parametrize(
    ("text", "evidence", "invented"),
    [
        ("The revenue was 98765 kronor.", "42\nIt is 14:32 on 2026-11-22.", ["98765"]),
        ("revenue of 98765 and 12", "12 in all", ["98765"]),
        ("77 and 77 and 88", "", ["77", "88"]),
        ("It costs 98765kr, or $98,765.43.", "42", ["98765", "98,765.43"]),
        ("98 765 kronor", "42", ["98 765"]),
        ("47 kronor", "42", ["47"]),
        ("a share of 61 %", "there were 100 of 300", ["61"]),
    ],
)
def test_an_answers_figures_without_evidence_are_noticed(text: str, evidence: str, invented: list[str]) -> None:
    assert unexplained_figures(text, evidence) == invented


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("1,250 euros", "1250 euros"),
        ("1 234 567,50 kr", "1234567.5"),
        ("12.5 % of 40", "12.5 and 40"),
        ("17,5 * 240 = 4 200", "17.5*240"),
        ("about 99,000 kronor, or 98.8 thousand", "98765"),
        ("1.2 million", "1234567"),
        ("The total is 60 and the average 15.", "10 12 17 21"),
        ("That is 33 % of them, and 200 are left.", "100 of 300"),
        ("It rose by 25 %, from 80 to 100.", "80 and 100"),
        ("Half of it is 21, and half of that 10.5.", "42 / 2"),
        ("21 °C (69.8 °F)", "21"),
        ("90 minutes are 5,400 seconds", "90"),
        ("a dozen, which is 12", "a dozen"),
        ("There are 12 files.", "\n".join(f"{letter}.txt" for letter in "abcdefghijkl")),
    ],
)
def test_what_is_rounded_converted_or_worked_out_is_no_invention(text: str, evidence: str) -> None:
    assert unexplained_figures(text, evidence) == []


@pytest.mark.parametrize(
    "text",
    [
        "1. first\n2. second\n10. tenth\n  - 11) eleventh\n**12.** twelfth",
        "On 22 November 2026 (2026-11-22), at 14:32 or 2:32 pm; den 22 november kl. 14.32, since 1998",
        "`x = 99999`\n```python\ny = 12345\n```",
        "as the report says [12], see https://example.org/98765",
        "release 3.12.1 of abc12345",
        "UTC+02:00",
    ],
)
def test_dates_list_numbers_code_and_citations_are_no_claims(text: str) -> None:
    assert unexplained_figures(text, "nothing") == []


@pytest.mark.parametrize(
    ("request_", "free"),
    [("Write a poem about 3 cats", True), ("Skriv en dikt om vintern", True), ("What was the revenue?", False)],
)
def test_what_is_made_up_on_request_needs_no_evidence(request_: str, free: bool) -> None:
    assert asks_to_invent(request_) is free


def test_long_texts_are_looked_through_in_no_time() -> None:
    began = time.monotonic()
    evidence = " ".join(str(number * 37.3) for number in range(20_000))
    assert (
        unexplained_figures("- " * 20_000 + " ".join(str(number * 991) for number in range(500)), evidence) is not None
    )
    assert time.monotonic() - began < 5
