"""Answers without a model: passages in their own words, for three personas, in the requested form."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.answers.evidence import NOT_IN_DOCUMENTS, contains_no_answer_text
from agent.text.follow_up import NameInText
from agent.text.requested_form import remove_form, split_questions
from gateway.features.documents.engine.grounded_answers import PERSONAS
from gateway.features.documents.engine.grounded_answers.formats import Format, read_format
from gateway.features.documents.engine.grounded_answers.passage_quotes import MAX_NAMES
from gateway.features.documents.engine.grounded_answers.passage_terms import PassageTerms
from tests.unit.grounded_answers.passages import HANDBOOK, is_exact, passage, quote

HOW_MANY = "How many days of paid holiday does an employee have?"
BEST = HANDBOOK[:1]


@pytest.mark.row("S003-31", "S003-32")
def test_the_best_passage_is_quoted_under_its_title_with_its_place() -> None:
    output = quote(HOW_MANY, *BEST)
    assert output.content == (
        "**handbook.md \u203a Holidays**\n\n> Every employee has 28 days of paid holiday a year. Holidays are approved "
        "by the head of the department. [1]"
    )
    (citation,) = output.citations
    assert is_exact(citation)
    assert (citation.chunk_id, citation.page, citation.number, citation.source) == ("c1", 1, 1, "handbook.md")
    assert citation.citation_id.startswith("cit_")
    assert 0.5 < output.confidence_score <= 1
    assert quote(HOW_MANY, *BEST, passage("x y z", 2, score=0.3, heading_path=["Travel"])).follow_up_suggestions == (
        "What do the documents say about Travel?",
    )


@pytest.mark.row("S003-27")
def test_personas_differ_in_form_only() -> None:
    outputs = {persona: quote(HOW_MANY, persona=persona) for persona in PERSONAS}
    assert {persona: output.tone_used for persona, output in outputs.items()} == {p: p for p in PERSONAS}
    assert len({output.content for output in outputs.values()}) == 3
    assert all("28 days of paid holiday" in output.content for output in outputs.values())
    assert all(is_exact(one) for output in outputs.values() for one in output.citations)
    assert outputs["Executive"].content.startswith("- handbook.md: \u201cEvery employee has 28 days")
    assert "**handbook.md, page 1 \u203a Holidays**" in outputs["Technical"].content


@pytest.mark.row("S003-27", "S003-29")
@pytest.mark.parametrize("persona", PERSONAS)
def test_a_heading_that_stands_as_a_plain_line_is_no_answer(persona: str) -> None:
    text = "Breakfast times\n\nOn weekdays the kitchen serves from 7:15 until 9:40."
    docx = passage(text, source="guest.docx", heading_path=["House rules", "Breakfast times"])
    output = quote("What are the breakfast times?", docx, persona=persona)
    assert "On weekdays the kitchen serves from 7:15 until 9:40." in output.content
    assert "> Breakfast times" not in output.content
    assert "\u201cBreakfast times" not in output.content


def test_of_a_table_the_matching_rows_are_quoted_below_its_head() -> None:
    question = "What is the price of the bus?"
    rows = "> | Item | Price |\n> | --- | --- |\n> | Train | 900 [1] |\n> | Bus | 1,040 [1] |"
    assert rows in quote(question, HANDBOOK[1], persona="Technical").content
    wide = "| Item | Price |\n| --- | --- |\n" + "\n".join(f"| Thing {n} with a long name | {n} |" for n in range(60))
    content = quote("What is the price of thing 7?", passage(wide)).content
    assert "> | Thing 7 with a long name | 7 [1] |" in content
    assert content.count("\n") == 4


def test_of_a_long_passage_the_sentences_around_the_best_one_are_quoted() -> None:
    text = " ".join(f"Paragraph {n} tells of many other things than the matter." for n in range(20))
    content = quote("Where are parking permits sold?", passage(f"{text} Parking permits are sold here. {text}")).content
    assert "Parking permits are sold here." in content
    assert len(content) < 800
    assert is_exact(quote("Where are parking permits sold?", passage(text)).citations[0], passage(text))


def test_passages_much_less_relevant_than_the_best_are_left_out() -> None:
    others = [passage(f"Rule {n} of the house.", n, score=0.5, source=f"{n}.md") for n in range(2, 9)]
    assert len(quote(HOW_MANY, *BEST, *others).citations) == 1
    same = [one.model_copy(update={"relevance_score": 0.9}) for one in others]
    assert len(quote(HOW_MANY, *BEST, *same).citations) == 3


CLOSEST = "The closest passages, which may not answer the question:"


@pytest.mark.parametrize(("score", "is_doubtful"), [(0.59, True), (0.6, False)])
@pytest.mark.parametrize("persona", PERSONAS)
def test_passages_of_little_relevance_are_introduced_as_doubtful(score: float, is_doubtful: bool, persona: str) -> None:
    doubtful = [one.model_copy(update={"relevance_score": min(score, one.relevance_score)}) for one in HANDBOOK]
    certain = quote(HOW_MANY, persona=persona).content
    content = quote(HOW_MANY, *doubtful, persona=persona).content
    assert content.startswith(f"{CLOSEST}\n\n") == is_doubtful
    assert "28 days of paid holiday" in content
    assert CLOSEST not in certain


@pytest.mark.parametrize("form", ["as JSON", "as bullet points", "as a table", "in one sentence"])
def test_every_form_says_that_quotations_are_doubtful(form: str) -> None:
    output = quote(HOW_MANY, passage(HANDBOOK[0].content, score=0.5), formatting_instructions=form)
    told: dict[str, Any] = {"answer": output.content, "statements": []}
    if form == "as JSON":
        told = json.loads(output.content)
    assert told["answer"].startswith(f"{CLOSEST}\n\n")
    assert "28 days of paid holiday" in told["answer"]
    assert all(CLOSEST not in one["text"] for one in told["statements"])
    assert len(output.citations) >= 1


@pytest.mark.row("S003-29")
def test_without_passages_there_is_no_answer_in_any_form() -> None:
    for instructions in (None, "as JSON", "as a table"):
        output = quote("What now?", passage(" ", 1), formatting_instructions=instructions)
        assert NOT_IN_DOCUMENTS in output.content
        assert (output.citations, output.confidence_score) == ((), 0.0)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Vem vann pokalen i fotboll?", "Det st\u00e5r inte i dokumenten."),
        ("Wer hat den Pokal gewonnen?", "Das steht nicht in den Dokumenten."),
        ("Who won the cup?", NOT_IN_DOCUMENTS),
    ],
)
def test_no_answer_is_told_in_the_language_of_the_question(question: str, text: str) -> None:
    assert quote(question, passage(" ")).content == text


@pytest.mark.row("S003-30")
def test_json_is_json_and_still_cites() -> None:
    answer = json.loads(quote(HOW_MANY, *BEST, formatting_instructions="as JSON").content)
    assert answer["statements"][0] == {"text": "Every employee has 28 days of paid holiday a year.", "citations": [1]}
    assert answer["sources"][0]["name"] == "handbook.md, page 1"
    nothing = json.loads(quote("Who is Zidane?", passage(" "), formatting_instructions="JSON").content)
    assert nothing == {"answer": NOT_IN_DOCUMENTS, "statements": [], "sources": []}


def test_lists_tables_and_limits() -> None:
    question = "Who approves holidays?"
    bullets = quote(question, *BEST, formatting_instructions="as a bullet list").content.splitlines()
    assert len(bullets) == 2
    assert all(line.startswith("- ") and line.endswith("[1]") for line in bullets)
    table = quote(question, *BEST, formatting_instructions="a table, please").content.splitlines()
    assert table[:2] == ["| Statement | Source |", "| --- | --- |"]
    assert all(line.count("|") == 3 and "[1]" in line for line in table[2:])
    one = quote(question, *BEST, formatting_instructions="at most one sentence").content
    assert one == "Holidays are approved by the head of the department. [1]", "the best sentence, not the first"
    short = quote(question, *BEST, formatting_instructions="in no more than 4 words").content
    assert len(short.replace("[1]", "").split()) <= 4
    assert "\u2026" in short


@pytest.mark.parametrize(
    ("question", "form"),
    [
        ("How many days? Answer as JSON.", Format(shape="json")),
        ("Answer in at most two sentences.", Format(max_sentences=2)),
        ("Give me the rules as a bullet list in at most 30 words", Format(shape="bullets", max_words=30)),
        ("What does the table on page 3 list?", Format()),
        ("How many words may a title have?", Format()),
        ("Which rule has two sentences?", Format()),
    ],
)
def test_what_a_question_asks_of_the_form(question: str, form: Format) -> None:
    assert read_format(question, is_question=True) == form


def test_instructions_are_read_in_plain_words() -> None:
    assert read_format("bullet points, max 3 sentences") == Format(shape="bullets", max_sentences=3)
    assert read_format("Markdown with a friendly tone") == Format()
    assert read_format("") == Format()


def test_what_is_searched_for_has_no_words_about_the_form_and_one_question_each() -> None:
    assert remove_form("How many days? Answer as JSON.") == "How many days?"
    assert remove_form("What does the table on page 3 list?") == "What does the table on page 3 list?"
    assert split_questions("Who books trains? What does a bus cost?") == ["Who books trains?", "What does a bus cost?"]
    assert split_questions("I am new. Who books trains?") == ["I am new. Who books trains?"]


@pytest.mark.row("S003-33")
def test_a_comparison_has_a_section_for_each_side() -> None:
    output = quote("Compare train tickets and pears", HANDBOOK[1], topics=("train tickets", "pears"))
    assert output.content.startswith("**Train tickets**\n\n**handbook.md \u203a Travel**\n\n> ")
    assert output.content.endswith("**Pears**\n\nThe documents don't say.")


@pytest.mark.parametrize("others", [(), (passage("The yard is open.", 2, title="The members' guide"),)])
def test_a_side_is_not_denied_for_a_word_of_the_title_that_all_passages_have(others: tuple[Any, ...]) -> None:
    prices = passage("A berth costs 95 pounds, winter storage 420.", title="The members' guide", heading_path=["Fees"])
    topics = ("price of a berth", "winter storage for members")
    output = quote("Compare the price of a berth with winter storage for members", prices, *others, topics=topics)
    assert output.content.startswith("**Price of a berth**\n\n**handbook.md \u203a Fees**\n\n> A berth costs 95")


@pytest.mark.parametrize(("score", "is_doubtful"), [(0.5, True), (0.7, False)])
def test_half_an_answer_to_one_of_several_questions_is_quoted_and_called_doubtful(
    score: float, is_doubtful: bool
) -> None:
    water = passage("Elin Sand answers for the pipes.", 1, score=score, heading_path=["Pipes"])
    days = passage("Bo Lind leads the work days in May.", 2, heading_path=["Work days"])
    content = quote("Who maintains the pipes and who leads the work days?", water, days).content
    assert "Elin Sand answers for the pipes." in content
    notice = "These passages may not answer \u201cWho maintains the pipes\u201d."
    assert content.endswith(notice) == is_doubtful


def test_images_links_and_footnotes_of_a_document_are_not_passed_on() -> None:
    text = "The holiday rule![x](http://evil.example/?leak) is [here](http://evil.example) for all days.[24]"
    output = quote("What is the holiday rule for all days?", passage(text))
    assert output.content.endswith("> The holiday rulex is here for all days. [1]")
    assert is_exact(output.citations[0], passage(text))


@given(
    st.text(max_size=200),
    st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=4),
    st.sampled_from(PERSONAS),
)
def test_whatever_stands_in_documents_quotes_are_exact(question: str, texts: list[str], persona: str) -> None:
    chunks = [passage(text, number, source=f"{number}.md") for number, text in enumerate(texts, start=1)]
    output = quote(f"{question} {texts[0][:80]}", *chunks, persona=persona)
    assert all(is_exact(one, *chunks) for one in output.citations)
    assert 0 <= output.confidence_score <= 1
    assert output.citations or contains_no_answer_text(output.content) or "{" in output.content


def test_of_a_message_of_many_names_some_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for: list[str] = []

    def has_sibling_of(_: PassageTerms, one: NameInText) -> bool:
        looked_for.append(one.name)
        return False

    monkeypatch.setattr(PassageTerms, "has_sibling_of", has_sibling_of)
    names = " ".join(f"A{number}" for number in range(1_000))
    quote(f"How many days of paid holiday does an employee have in {names}?")
    assert 0 < len({*looked_for}) <= MAX_NAMES
