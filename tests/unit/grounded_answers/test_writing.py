"""Answers by rules: the documents' own sentences, for three readers, in the form that was asked for."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.grounded_answers import PERSONAS, Ground, conflicts
from agent.grounded_answers.formats import Format, asked_format, read_format
from agent.grounded_answers.no_answer_text import contains_no_answer_text
from agent.search.models import NOT_IN_DOCUMENTS
from tests.unit.grounded_answers.passages import HANDBOOK, answered, passage, stands

HOW_MANY = "How many days of paid holiday does an employee have?"
OLD = passage("Each employee has 25 days of paid holiday.", 3, source="old.md", heading_path=["Holidays"], score=0.8)


@pytest.mark.row("S003-31", "S003-32")
def test_the_best_sentence_with_its_words_and_its_place() -> None:
    output = answered(HOW_MANY)
    assert output.content == "Every employee has 28 days of paid holiday a year. [1]"
    (citation,) = output.citations
    assert stands(citation)
    assert (citation.chunk_id, citation.page, citation.number, citation.source) == ("c1", 1, 1, "handbook.md")
    assert citation.citation_id.startswith("cit_")
    assert 0.5 < output.confidence_score <= 1
    assert output.follow_up_suggestions[0] == "What do the documents say about Travel?"


@pytest.mark.row("S003-27")
def test_three_readers_are_told_in_three_ways() -> None:
    outputs = {persona: answered(HOW_MANY, persona=persona) for persona in PERSONAS}
    assert {persona: output.tone_used for persona, output in outputs.items()} == {p: p for p in PERSONAS}
    assert len({output.content for output in outputs.values()}) == 3
    assert all(stands(one) for output in outputs.values() for one in output.citations)
    assert outputs["Executive"].content.startswith("In short: Every employee has 28 days")
    assert "**Holidays** (handbook.md, page 1)" in outputs["Technical"].content


def test_tables_are_told_as_tables_and_to_an_executive_in_a_line() -> None:
    asked = "What is the price of the bus?"
    assert answered(asked).content == "| Item | Price |\n| --- | --- |\n| Bus | 1,040 [1] |"
    assert "| Train | 900 [1] |\n| Bus | 1,040 [1] |" in answered(asked, persona="Technical").content
    assert answered(asked, persona="Executive").content == "In short: Item: Bus; Price: 1,040. [1]"


def test_an_executive_reads_three_sentences_at_most() -> None:
    text = " ".join(f"The holiday rule number {number} of the year is good for many days." for number in range(20))
    output = answered("What is the holiday rule of the year?", passage(text), persona="Executive")
    assert output.content.count("[1]") == 3


@pytest.mark.row("S003-29")
def test_what_is_not_there_is_not_guessed() -> None:
    output = answered("Who won the football world cup in France?")
    assert (output.content, output.citations, output.confidence_score) == (NOT_IN_DOCUMENTS, (), 0.0)


def test_without_passages_there_is_no_answer_in_any_form() -> None:
    for instructions in (None, "as JSON", "as a table"):
        output = answered("What now?", passage(" ", 1), formatting_instructions=instructions)
        assert NOT_IN_DOCUMENTS in output.content
        assert output.citations == ()


def test_no_sentence_is_said_twice() -> None:
    copies = [passage("Every employee has 28 days of paid holiday a year.", n, source=f"{n}.md") for n in range(1, 6)]
    assert answered(HOW_MANY, *copies).content.count("28") == 1


def test_two_hundred_passages_are_read() -> None:
    many = [passage(f"Department {n} has its own rule about parking.", n, source=f"{n}.md") for n in range(1, 200)]
    output = answered(HOW_MANY, *many, passage("Every employee has 28 days of paid holiday.", 200, source="x.md"))
    assert output.content.startswith("Every employee has 28 days of paid holiday. [1]")


def test_a_sentence_that_leans_on_the_one_before_brings_it_along() -> None:
    text = "The travel desk books trains. It is open on holidays and weekdays. Nobody works there at night."
    assert answered("When is it open on holidays and weekdays?", passage(text)).content == (
        "The travel desk books trains. [1] It is open on holidays and weekdays. [1]"
    )


def test_a_sentence_that_opens_a_list_brings_it_along() -> None:
    text = "To get started with swimming, do this:\n\n- Lay down.\n- Relax.\n\nOther things."
    assert answered("How do I get started with swimming?", passage(text)).content == (
        "To get started with swimming, do this: [1] Lay down. [1] Relax. [1]"
    )


@pytest.mark.row("S003-30")
def test_json_is_json_and_still_cites() -> None:
    told = json.loads(answered(HOW_MANY, formatting_instructions="as JSON").content)
    assert told["statements"] == [{"text": "Every employee has 28 days of paid holiday a year.", "citations": [1]}]
    assert told["sources"][0]["name"] == "handbook.md, page 1"
    nothing = json.loads(answered("Who is Zidane?", formatting_instructions="JSON").content)
    assert nothing == {"answer": NOT_IN_DOCUMENTS, "statements": [], "sources": []}


def test_lists_and_tables_and_limits() -> None:
    asked = "What about holidays of employees, approved by the head?"
    bullets = answered(asked, formatting_instructions="as a bullet list").content.splitlines()
    assert len(bullets) == 2
    assert all(line.startswith("- ") and line.endswith("[1]") for line in bullets)
    table = answered(asked, formatting_instructions="a table, please").content.splitlines()
    assert table[:2] == ["| Statement | Source |", "| --- | --- |"]
    assert all(line.count("|") == 3 and "[1]" in line for line in table[2:])
    assert answered(asked, formatting_instructions="at most one sentence").content.count("[1]") == 1
    short = answered(asked, formatting_instructions="in no more than 4 words").content
    assert len(short.replace("[1]", "").split()) <= 4
    assert "\u2026" in short


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("How many days? Answer as JSON.", Format(shape="json")),
        ("Answer in at most two sentences.", Format(max_sentences=2)),
        ("Give me the rules as a bullet list in at most 30 words", Format(shape="bullets", max_words=30)),
        ("What does the table on page 3 list?", Format()),
        ("How many words may a title have?", Format()),
        ("Which rule has two sentences?", Format()),
    ],
)
def test_what_a_question_asks_of_the_form(question: str, asked: Format) -> None:
    assert asked_format(question) == asked


def test_instructions_are_read_in_plain_words() -> None:
    assert read_format("bullet points, max 3 sentences") == Format(shape="bullets", max_sentences=3)
    assert read_format("Markdown with a friendly tone") == Format()
    assert read_format(None) == Format()


def test_sources_that_disagree_are_shown_as_disagreeing() -> None:
    for persona in PERSONAS:
        output = answered(HOW_MANY, *HANDBOOK, OLD, persona=persona)
        assert "sources disagree" in output.content
        assert "28 days" in output.content
        assert "25 days" in output.content
        assert {one.chunk_id for one in output.citations} == {"c1", "c3"}
        assert output.confidence_score < answered(HOW_MANY, persona=persona).confidence_score
    assert len(answered(HOW_MANY, *HANDBOOK, OLD, formatting_instructions="in at most 6 words").content.split()) <= 8


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Employees in Sweden have 28 days of paid holiday.", "Employees in Norway have 25 days of paid holiday."),
        ("Managers have 28 days of paid holiday.", "Drivers have 25 days of paid holiday."),
        ("After 5 years it is 30 days of holiday.", "After 10 years it is 30 days of holiday."),
        ("The minimum stay in the house is 2 nights.", "The maximum stay in the house is 9 nights."),
        ("Plan A has 10 days of paid holiday.", "Plan B has 20 days of paid holiday."),
        ("The paid holiday of employees is 28 days.", "The paid holiday of employees is 4 weeks."),
        ("The notice period is 3 months.", "The notice period of managers is 6 months."),
        ("Tests at a flow speed of 2 machs were made.", "Tests at a flow speed of 3 machs were made."),
    ],
)
def test_what_is_no_disagreement(one: str, other: str) -> None:
    chunks = (passage(one, 1, source="a.md"), passage(other, 2, source="b.md"))
    assert conflicts(Ground(chunks).passages) == []


def test_years_and_headings_tell_values_apart() -> None:
    said = "The paid holiday of employees is {} days."
    years = (passage(said.format(28), 1, source="2023.md"), passage(said.format(25), 2, source="2024.md"))
    parts = (
        passage(said.format(28), 1, heading_path=["Sweden"]), passage(said.format(25), 2, heading_path=["Norway"]),
    )  # fmt: skip
    same = (passage(said.format(28), 1, source="a.md"), passage(said.format(25), 2, source="b.md"))
    assert [len(conflicts(Ground(chunks).passages)) for chunks in (years, parts, same)] == [0, 0, 1]


def test_a_comparison_tells_each_side_or_that_it_is_not_there() -> None:
    output = answered("Compare train tickets and pears", topics=("train tickets", "pears"))
    assert output.content == (
        "**Train tickets**\n\nTrain tickets are booked by the travel desk. [1]\n\n**Pears**\n\nThe documents don't say."
    )


def test_pictures_links_and_footnotes_of_a_document_are_not_passed_on() -> None:
    text = "The holiday rule![x](http://evil.example/?leak) is [here](http://evil.example) for all days.[24]"
    output = answered("What is the holiday rule for all days?", passage(text))
    assert output.content == "The holiday rulex is here for all days. [1]"
    assert stands(output.citations[0], passage(text))


@given(
    st.text(max_size=200),
    st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=4),
    st.sampled_from(PERSONAS),
)
def test_whatever_stands_in_documents_quotes_are_exact(question: str, texts: list[str], persona: str) -> None:
    chunks = [passage(text, number, source=f"{number}.md") for number, text in enumerate(texts, start=1)]
    output = answered(f"{question} {texts[0][:80]}", *chunks, persona=persona)
    assert all(stands(one, *chunks) for one in output.citations)
    assert 0 <= output.confidence_score <= 1
    assert output.citations or contains_no_answer_text(output.content) or "{" in output.content
    assert output == answered(f"{question} {texts[0][:80]}", *chunks, persona=persona)
