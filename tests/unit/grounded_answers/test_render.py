"""What is shown of an unfinished answer is the beginning of the finished one, and nothing is left hanging."""

from hypothesis import given
from hypothesis import strategies as st

from agent.core.models import Source
from agent.grounded_answers import kept, presentable, read, render
from agent.grounded_answers.rewrite import problems, rewritten, told
from tests.unit.grounded_answers.passages import ground

PARTS = (
    "# Holidays\n\n", "Every employee has 28 days [1]. ", "Holidays are approved by the department. [1]\n\n",
    "An employee has 99 days [1]. ", "Trains are booked by the travel desk [2]. ", "Hello! ", "The prices are:\n\n",
    "| Item | Price |\n| --- | --- |\n| Train | 900 |\n| Bus | 1 |\n\n[2]\n\n", "- Flights under 600 km [2].\n",
    "Zidane won.\n\n", "Would you like more?\n\n", "The documents do not say who pays. ", "```\nx\n```\n\n", "[1]\n\n",
)  # fmt: skip


def shown(answer: str) -> str:
    checked = ground()
    return render(kept(checked.check(read(answer))), checked).text


@given(st.lists(st.sampled_from(PARTS), max_size=10), st.data())
def test_what_may_be_shown_early_is_never_taken_back(parts: list[str], data: st.DataObject) -> None:
    answer = "".join(parts)
    so_far = answer[: data.draw(st.integers(0, len(answer)))]
    checked = ground()
    early = render(presentable(checked.check(read(so_far, finished=False))), checked)
    assert shown(answer).startswith(early.text)
    assert not early.text or early.sources, "what is shown brings its sources along"


def test_what_leads_to_a_statement_made_before_is_not_shown_early() -> None:
    said = "Holidays are approved by the department. [1]\n\n"
    begun = ground().check(read(f"{said}# Holidays\n\nHello! {said}", finished=False))
    assert render(presentable(begun), ground()).text == said.strip()


def test_headings_and_openings_go_with_what_they_opened() -> None:
    assert (
        shown("# A\n\nHe has 99 days [1].\n\n# B\n\nEmployees have 28 days [1].")
        == "# B\n\nEmployees have 28 days [1]."
    )
    assert shown("These are the rules:\n\n- He has 99 days [1].\n\nEmployees have 28 days [1].") == (
        "Employees have 28 days [1]."
    )
    assert shown("| Item | Price |\n| --- | --- |\n| Train | 901 |\n\n[2]") == ""
    assert shown("Hello! Here is what I found:") == ""


def test_citations_are_numbered_as_they_are_first_cited() -> None:
    checked = ground()
    made = render(
        checked.check(read("The bus costs 1040 [2]. Employees have 28 days [1]. The train costs 900 [2].")), checked
    )
    assert made.text == "The bus costs 1040 [1]. Employees have 28 days [2]. The train costs 900 [1]."
    assert [(source.id, source.name, source.quotes) for source in made.sources] == [
        (1, "handbook.md, page 2", ("| Bus | 1,040 |", "| Train | 900 |")),
        (2, "handbook.md, page 1", ("Every employee has 28 days of paid holiday a year.",)),
    ]
    assert [(one.number, one.page) for one in made.citations] == [(1, 2), (2, 1), (1, 2)]


def test_sources_that_were_seen_keep_their_numbers() -> None:
    checked = ground()
    seen = [Source(id=1, name="handbook.md, page 2", quotes=("| Bus | 1,040 |",))]
    made = render(checked.check(read("Employees have 28 days [1].")), checked, shown=seen)
    assert made.text == "Employees have 28 days [2]."
    assert [source.id for source in made.sources] == [1, 2]


def test_failed_sentences_are_told_and_replaced_in_their_place() -> None:
    checked = ground()
    verdicts = checked.check(
        read("Employees have 99 days [1]. Trains are booked by the travel desk [2]. Zidane pays [2].")
    )
    assert told(problems(verdicts)).startswith("1. Employees have 99 days. [1]\n   ('99' does not stand")
    again = rewritten(verdicts, "1. Employees have 28 days [1].\n2. -", checked)
    assert render(kept(again), checked).text == "Employees have 28 days [1]. Trains are booked by the travel desk [2]."


def test_a_reply_that_numbers_nothing_is_read_as_one_text() -> None:
    checked = ground()
    verdicts = checked.check(read("Employees have 99 days [1]. Trains are booked by the travel desk [2]."))
    reply = "Employees have 28 days [1]. Trains are booked by the travel desk [2]."
    assert render(kept(rewritten(verdicts, reply, checked)), checked).text == reply
    assert [one.problem for one in rewritten(verdicts, "", checked)] == [one.problem for one in verdicts]
