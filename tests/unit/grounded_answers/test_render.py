"""What is shown of an unfinished answer is the beginning of the finished one, and nothing is left hanging."""

from hypothesis import given
from hypothesis import strategies as st

from agent.core.models import Source
from gateway.features.documents.engine.grounded_answers import parse_answer
from gateway.features.documents.engine.grounded_answers.render import render, select_presentable, select_supported
from gateway.features.documents.engine.grounded_answers.rewrite import describe_problems, replace_failed
from tests.unit.grounded_answers.passages import make_checker

DAYS = "Every employee has 28 days of paid holiday a year [1]."
HEAD = "Holidays are approved by the head of the department [1]."
TRAINS = "Train tickets are booked by the travel desk [2]."
PARTS = (
    "# Holidays\n\n", f"{DAYS} ", f"{HEAD}\n\n", "An employee has 99 days [1]. ", f"{TRAINS} ", "Hello! ",
    "The prices are:\n\n", "| Item | Price |\n| --- | --- |\n| Train | 900 |\n| Bus | 1 |\n\n[2]\n\n",
    "- Flights under 600 kilometres are not paid for [2].\n", "Zidane won.\n\n", "Would you like more?\n\n",
    "The documents do not say who pays. ", "```\nx\n```\n\n", "[1]\n\n",
)  # fmt: skip


def show(answer: str) -> str:
    checker = make_checker()
    return render(select_supported(checker.check(parse_answer(answer))), checker).text


@given(st.lists(st.sampled_from(PARTS), max_size=10), st.data())
def test_what_may_be_shown_early_is_never_taken_back(parts: list[str], data: st.DataObject) -> None:
    answer = "".join(parts)
    so_far = answer[: data.draw(st.integers(0, len(answer)))]
    checker = make_checker()
    early = render(select_presentable(checker.check(parse_answer(so_far, finished=False))), checker)
    assert show(answer).startswith(early.text)
    assert not early.text or early.sources, "what is shown brings its sources along"


def test_nothing_behind_an_open_claim_is_shown_early() -> None:
    checker = make_checker()
    begun = checker.check(parse_answer(f"{DAYS} Staff rest a lot [1]. {HEAD} And", finished=False))
    assert render(select_presentable(begun), checker).text == DAYS


def test_what_leads_to_a_repetition_is_not_shown_early() -> None:
    checker = make_checker()
    begun = checker.check(parse_answer(f"{HEAD}\n\n# Holidays\n\n{HEAD}\n\n", finished=False))
    assert render(select_presentable(begun), checker).text == HEAD


def test_headings_and_openings_go_with_what_they_introduced() -> None:
    assert show(f"# A\n\nHe has 99 days [1].\n\n# B\n\n{DAYS}") == f"# B\n\n{DAYS}"
    assert show(f"The rules:\n\n- He has 99 days [1].\n\n{DAYS}") == DAYS
    assert show("| Item | Price |\n| --- | --- |\n| Train | 901 |\n\n[2]") == ""
    assert show("# Holidays") == ""


def test_citations_are_numbered_as_they_are_first_cited() -> None:
    checker = make_checker()
    flights = "Flights under 600 kilometres are not paid for [2]."
    made = render(checker.check(parse_answer(f"{TRAINS} {DAYS} {flights}")), checker)
    assert made.text == f"{TRAINS} {DAYS} {flights}".replace("[1]", "[x]").replace("[2]", "[1]").replace("[x]", "[2]")
    assert [(source.id, source.name, source.quotes) for source in made.sources] == [
        (
            1,
            "handbook.md, page 2",
            ("Train tickets are booked by the travel desk.", "Flights under 600 kilometres are not paid for."),
        ),
        (2, "handbook.md, page 1", ("Every employee has 28 days of paid holiday a year.",)),
    ]
    assert [(one.number, one.page) for one in made.citations.values()] == [(1, 2), (2, 1), (1, 2)]


def test_sources_that_were_seen_keep_their_numbers() -> None:
    checker = make_checker()
    seen = [Source(id=1, name="handbook.md, page 2", quotes=("| Bus | 1,040 |",))]
    made = render(checker.check(parse_answer(DAYS)), checker, shown=seen)
    assert made.text == DAYS.replace("[1]", "[2]")
    assert [source.id for source in made.sources] == [1, 2]


def test_failed_sentences_are_described_and_replaced_in_their_place() -> None:
    checker = make_checker()
    checked = checker.check(parse_answer(f"Employees have 99 days [1]. {TRAINS} It costs 77 [2]."))
    assert describe_problems([one for one in checked if one.problem]).startswith(
        "<problems>\n1. Employees have 99 days. [1]\n   ('99 days' is not in [1])"
    )
    again = checker.check(replace_failed(checked, f"1. {DAYS}\n2. -"))
    assert render(select_supported(again), checker).text == f"{DAYS} {TRAINS}"
    assert len([one for one in again if one.problem]) == 1


def test_a_reply_without_numbers_is_one_text_and_an_empty_one_replaces_nothing() -> None:
    checker = make_checker()
    checked = checker.check(parse_answer(f"Employees have 99 days [1]. {TRAINS}"))
    again = checker.check(replace_failed(checked, f"{DAYS} {TRAINS}"))
    assert render(select_supported(again), checker).text == f"{DAYS} {TRAINS}"
    assert replace_failed(checked, "") == [one.unit for one in checked]
