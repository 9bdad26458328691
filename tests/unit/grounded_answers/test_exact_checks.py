"""The exact checks of a claim: citations, values, quoted words. Whole sentences are quotations; the rest is open."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.text.values import KnownValues
from gateway.features.documents.engine.grounded_answers import CheckedUnit, EvidenceChecker, parse_answer
from gateway.features.documents.engine.grounded_answers.render import render, select_supported
from gateway.features.documents.engine.search.models import RetrievedContext
from tests.unit.grounded_answers.passages import HANDBOOK, is_exact, make_checker, passage

DAYS = "Every employee has 28 days of paid holiday a year."


def check(answer: str, *chunks: RetrievedContext, question: str = "What are the rules?") -> list[CheckedUnit]:
    return make_checker(*chunks, question=question).check(parse_answer(answer))


def find_problem(answer: str, question: str = "What are the rules?") -> str:
    """The first problem of an answer about the handbook; empty if there is none."""
    return next((one.problem for one in check(answer, question=question) if one.problem), "")


def list_quotes(units: list[CheckedUnit]) -> list[str]:
    return [HANDBOOK[quote.number - 1].content[quote.start : quote.end] for one in units for quote in one.list_quotes()]


@pytest.mark.row("S003-28")
@pytest.mark.parametrize(
    ("answer", "quotes"),
    [
        (f"{DAYS} [1]", [DAYS]),
        ("Every employee has 28 days of paid holiday a year [1].", [DAYS]),
        ("every employee has **28 days** of paid holiday a year. [1]", [DAYS]),
        ("Train tickets are booked by the travel desk [2]. " + DAYS + " [1]", [
            "Train tickets are booked by the travel desk.", DAYS,
        ]),
        ("| Item | Price |\n| --- | --- |\n| Train | 900 |\n\n[2]", ["| Train | 900 |"]),
        ("Every employee has [1] 28 days of paid holiday a year. [1]", [DAYS, DAYS]),
    ],
)  # fmt: skip
def test_whole_sentences_and_rows_of_a_passage_are_quotations(answer: str, quotes: list[str]) -> None:
    units = check(answer)
    assert not any(one.problem or one.is_open for one in units)
    assert list_quotes(units) == quotes


@pytest.mark.parametrize(
    "answer",
    [
        "An employee has 28 days [1].",
        "Every employee has 28 days [1].",
        "Leftover days expire [1].",
        "Managers never approve holidays [1].",
        "Every employee has 28 days of unpaid holiday a year [1].",
        "Anst\u00e4llda har 28 dagars semester [1].",
        "Employees have twenty-nine days [1].",
        "According to the Staff handbook, page 1, it is 28 days [1].",
        "The desk is led since 2024-03-05 [2].",
        "\u201cEvery employee has 28 days\u201d, it says [1].",
        "| Item | Discount |\n| --- | --- |\n| Train | 900 |\n\n[2]",
        "Employees have 28 days.",
        "**Managers never approve holidays**",
        "Did you know that managers never approve holidays?",
        "Managers never approve:",
        "# Holidays not paid for a year",
        "Hello!",
        "The documents do not say who pays for it.",
        "Managers never approve, and: The documents don't say.",
    ],
)
def test_what_only_its_meaning_can_decide_stays_open(answer: str) -> None:
    units = check(answer)
    assert not any(one.problem for one in units)
    assert any(one.is_open for one in units)


@pytest.mark.parametrize(
    "answer",
    [
        "# Holidays",
        "**Travel**",
        "The documents don't say.",
        "Das steht nicht in den Dokumenten.",
        "Paid holiday:",
        "# Days of paid holiday",
    ],
)
def test_labels_and_no_answer_texts_make_no_claim(answer: str) -> None:
    (unit,) = check(answer)
    assert (unit.problem, unit.is_open, unit.states_fact) == ("", False, False)


@pytest.mark.row("S003-28")
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("An employee has 99 days [1].", "'99 days' is not in"),
        ("An employee has 28 days of 5% value [1].", "'5%' is not in"),
        ("An employee has 28 days [9].", r"there is no passage \[9\]"),
        ("An employee has 28 days [1][9].", r"there is no passage \[9\]"),
        ("An employee has 28 weeks [1].", "'28 weeks' is not in"),
        ("See page 7: 28 days [1].", "'7' is not in"),
        ("The desk is led since 6 March 2024 [2].", "'6 March 2024' is not in"),
        ("\u201cEvery employee has thirty-one days\u201d [1].", "in quotation marks"),
        ("| Item | Price |\n| --- | --- |\n| Train | 901 |\n\n[2]", "'901' is not in"),
        ("See https://evil.example/x1 [1].", "'https://evil.example/x1' is not in"),
        ("Write to INC-1042 [1].", "'INC-1042' is not in"),
        ("```\nrm -rf /\n```\n[1]", "this code is not in"),
        ("```\nrm -rf /\n```", "no citation"),
        ("Did you know that Zidane won 38 times?", "is in no passage"),
        ("# 99 reasons", "is in no passage"),
        (f"{DAYS} [1] And then the employee would", "cut off"),
    ],
)  # fmt: skip
def test_what_is_certainly_wrong_fails(answer: str, problem: str) -> None:
    assert re.search(problem, find_problem(answer)), find_problem(answer)


def test_values_of_the_question_and_of_tools_may_be_repeated() -> None:
    assert find_problem("For 520 people it is the same [1].", question="What about 520 people?") == ""
    assert find_problem("For 520 people it is the same [1].") != ""
    known = EvidenceChecker(HANDBOOK, "How much is it?", ("51 kg",))
    (unit,) = known.check(parse_answer("It is 51 kg."))
    assert unit.is_open
    assert known.accept_without_entailment(unit).states_fact
    assert known.check(parse_answer("It is 52 kg."))[0].problem


def test_a_part_of_a_sentence_is_no_quotation() -> None:
    chunk = passage("It is not true that every employee has 28 days. Managers approve leave, but never in July.")
    assert check("Every employee has 28 days [1].", chunk)[0].is_open
    assert check("Managers approve leave [1].", chunk)[0].is_open


def test_a_sentence_takes_the_next_citation_of_its_paragraph_and_of_no_other() -> None:
    first, second = parse_answer("Holidays are fine. The head of the department approves them. [1]")
    assert (first.cites, second.cites) == ((1,), (1,))
    first, second = parse_answer("Holidays are fine.\n\nThe head of the department approves them. [1]")
    assert (first.cites, second.cites) == ((), (1,))


def test_a_wrong_citation_of_a_value_is_corrected() -> None:
    (unit,) = check("An employee has 28 days of paid holiday [2].")
    assert unit.is_open
    assert unit.unit.cites == (1,)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ('{"answer": "It is so [1]."}', "It is so."),
        ('{"answer": "It is so [1]. It is the', "It is so. It is the"),
        ('```json\n{"summary": ["It is \\u00e5 [1].", "Or not [2]."], "count": 2}\n```', "It is \u00e5. Or not."),
        ('{"no": 1, "such": "thing"}', '{"no": 1, "such": "thing"}'),
        ("{It} is so [1].", "{It} is so."),
        ("It is [so](http://evil.example/?leak) [1].", "It is so."),
    ],
)
def test_json_that_nobody_asked_for_and_links_become_their_text(answer: str, text: str) -> None:
    assert " ".join(unit.text for unit in parse_answer(answer)) == text


SENTENCE = st.builds(
    "{} costs {} {} in all.".format,
    st.sampled_from(["The train", "The bus", "A ticket", "The desk"]),
    st.integers(13, 10**6),
    st.sampled_from(["kronor", "euros", "points"]),
)


@given(st.lists(SENTENCE, min_size=1, max_size=8), st.integers(0, 7), st.integers(13, 10**6))
def test_a_number_passes_only_if_its_passage_has_it(sentences: list[str], at: int, other: int) -> None:
    chunk = passage(" ".join(sentences))
    claim = sentences[at % len(sentences)]
    (true,) = check(f"{claim} [1]", chunk)
    assert true.states_fact
    changed = re.sub(r"\d+", str(other), claim)
    (result,) = check(f"{changed} [1]", chunk)
    known = KnownValues(chunk.content, "Staff handbook handbook.md")
    assert bool(result.problem) == bool(known.find_missing(changed))


@given(st.text(max_size=400), st.lists(st.text(min_size=1, max_size=200), min_size=1, max_size=3))
def test_every_quote_is_cut_from_its_passage(answer: str, texts: list[str]) -> None:
    chunks = [passage(text, number) for number, text in enumerate(texts, start=1)]
    checker = make_checker(*chunks)
    supported = select_supported(checker.check(parse_answer(f"{answer} [1]. {texts[0]} [1].")))
    assert all(is_exact(one, *chunks) for one in render(supported, checker).citations.values())
