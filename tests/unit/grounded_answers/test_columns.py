"""What a claim says of a table: the value of that column in that row, and of no other."""

import pytest

from agent.grounded_answers import read
from agent.grounded_answers.columns import asked_columns
from tests.unit.grounded_answers.passages import answered, ground, passage

PUMPS = passage(
    "## Technical data\n\n"
    "| Model | Flow (l/min) | Head (m) | Power (W) | Weight (kg) | Delivery |\n| --- | --- | --- | --- | --- | --- |\n"
    "| A100 | 40 | 12 | 180 | 4.2 | 3 weeks |\n| A250 | 95 | 18 | 420 | 7.9 | 5 weeks |\n\n"
    "The flow of all pumps is measured at 20 degrees. A repair takes 6 weeks."
)
PRICES = passage(
    "| Model | 1 unit | 10 units | Lease ends |\n| --- | --- | --- | --- |\n"
    "| A100 | 199 | 185 | 30 June 2028 |\n| A250 | 349 | 325 | 1 May 2027 |"
)


def problems(answer: str, *chunks: object) -> list[str]:
    return [one.problem for one in ground(*chunks).check(read(answer)) if one.problem]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "claim",
    [
        "The power of the A250 is 420 W [1].",
        "The A250 has a flow of 95 l/min [1].",
        "The A250 has a flow of 95 l/min and a power of 420 W [1].",
        "The A250 has 420 W of power and 95 l/min of flow [1].",
        "The A250 weighs 7.9 kg [1].",
        "At a head of 18 m the A250 has a power of 420 W [1].",
        "Flow and power of the A250 are 95 and 420 [1].",
        "The A250 needs 420 W and moves 95 l/min [1].",
        "The A100 weighs 4.2 kg, the A250 7.9 kg [1].",
        "The flow is measured at 20 degrees [1].",
        "A repair takes 6 weeks, delivery of the A250 5 weeks [1].",
        "| Model | Power (W) | Flow |\n| --- | --- | --- |\n| A250 | 420 | 95 |\n\n[1]",
        "A250: Flow (l/min): 95; Power (W): 420 [1].",
    ],
)
def test_a_value_under_its_own_column_stands(claim: str) -> None:
    assert problems(claim, PUMPS) == []


@pytest.mark.parametrize(
    ("claim", "title"),
    [
        ("The power of the A250 is 95 W [1].", "Power (W)"),
        ("The A250 has a flow of 420 l/min [1].", "Flow (l/min)"),
        ("The A250 has a flow of 420 l/min and a power of 95 W [1].", "Flow (l/min)"),
        ("The A250 has 95 W of power [1].", "Power (W)"),
        ("The A250 weighs 18 kg [1].", "Weight (kg)"),
        ("At a head of 18 m the A250 has a power of 95 W [1].", "Power (W)"),
        ("The power is 95 W [1].", "Power (W)"),
        ("| Model | Power (W) | Flow |\n| --- | --- | --- |\n| A250 | 95 | 420 |\n\n[1]", "Power (W)"),
    ],
)
def test_a_value_under_another_column_does_not_stand(claim: str, title: str) -> None:
    (problem,) = problems(claim, PUMPS)
    assert f"does not stand under '{title}'" in problem


def test_a_column_that_is_named_by_a_number_is_told_from_its_neighbours() -> None:
    assert problems("The A100 costs 185 for 10 units [1].", PRICES) == []
    assert len(problems("The A100 costs 199 for 10 units [1].", PRICES)) == 1
    assert problems("The lease ends on 1 May 2027 [1].", PRICES) == []


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What is the power of the A250?", "Model: A250; Power (W): 420. [1]"),
        ("How heavy is the A100?", "Model: A100; Weight (kg): 4.2. [1]"),
        ("Which model has a flow of 95 l/min?", "Model: A250; Flow (l/min): 95. [1]"),
    ],
)
def test_a_question_for_a_column_is_answered_by_row_column_and_value(question: str, said: str) -> None:
    output = answered(question, PUMPS)
    assert output.content == said
    assert output.citations[0].text_snippet.startswith("| A")


def test_a_row_is_shown_whole_where_no_column_is_asked_for() -> None:
    assert "| A250 | 95 | 18 | 420 | 7.9 | 5 weeks [1] |" in answered("What about the A250?", PUMPS).content


@pytest.mark.parametrize(
    ("wanted", "telling", "columns"),
    [
        (("power", "a250"), ("power",), (0, 3)),
        (("flow", "head"), ("flow", "head"), (0, 1, 2)),
        (("colour",), ("colour",), ()),
        (("power", "420", "95"), ("power", "95"), (0, 1, 3)),
    ],
)
def test_the_columns_of_a_question_are_those_it_says_or_that_hold_what_it_tells(
    wanted: tuple[str, ...], telling: tuple[str, ...], columns: tuple[int, ...]
) -> None:
    rows = PUMPS.content.splitlines()
    assert asked_columns(rows[5], rows[2], wanted, telling) == columns
