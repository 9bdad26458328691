"""What the documents do not say is refused, or said to be only near; and the rest of a question is still answered."""

import json

import pytest

from agent.grounded_answers.claims import says_absent
from agent.grounded_answers.form_words import parts_of, without_form
from agent.grounded_answers.no_answer_text import contains_no_answer_text, get_no_answer_text
from agent.text.stop_words import detect_language
from agent.text.terms import extract_query_terms, extract_terms, is_legacy_stop_stem
from tests.unit.grounded_answers.passages import answered, passage

BILLING = passage(
    "## Backups\n\nBackups of the billing database run every night at 02:30. They are kept for 35 days.",
    heading_path=["Backups"],
)
PUMPS = passage(
    "| Pump | Flow | Price (EUR) |\n| --- | --- | --- |\n| Atlas 100 | 45 | 289 |\n| Atlas 300 | 85 | 459 |",
    2,
    source="pumps.md",
)


def test_a_name_or_a_year_that_stands_nowhere_is_refused() -> None:
    assert answered("What is the price of the Atlas 200?", PUMPS).content == get_no_answer_text()
    assert answered("When do backups of the billing database run in Madrid?", BILLING).content == get_no_answer_text()
    premium = passage("The insurance premium in 2023 was 48,500 euros.")
    assert answered("What was the insurance premium in 2021?", premium).content == get_no_answer_text()
    assert "48,500" in answered("What was the insurance premium in 2023?", premium).content


def test_what_lacks_a_word_is_opened_with_it_and_less_sure() -> None:
    near, sure = (answered(f"When do backups of the {one} database run?", BILLING) for one in ("payroll", "billing"))
    assert near.content.startswith("The documents don't speak of \u201cpayroll\u201d. The nearest they say:\n\nBackups")
    assert near.confidence_score < sure.confidence_score / 1.5
    assert sure.content.startswith("Backups of the billing database run every night at 02:30. [1]")


@pytest.mark.parametrize("form", ["as a table", "bullets", "in one sentence", "at most 5 words"])
def test_what_is_only_near_says_so_in_every_form(form: str) -> None:
    output = answered("When do backups of the payroll database run?", BILLING, formatting_instructions=form)
    assert output.content.startswith("The documents don't speak of \u201cpayroll\u201d.")
    for persona in ("Executive", "Technical"):
        assert "payroll" in answered("When do backups of the payroll database run?", BILLING, persona=persona).content


def test_a_refusal_speaks_the_language_of_the_question() -> None:
    told = {
        "Was ist die Hauptstadt der Mongolei?": "Das steht nicht in den Dokumenten.",
        "Quelle est la capitale de la Mongolie ?": "Les documents ne le disent pas.",
        "\u00bfCu\u00e1l es la capital de Mongolia?": "Los documentos no lo dicen.",
        "Vad \u00e4r huvudstaden i Mongoliet?": "Det st\u00e5r inte i dokumenten.",
        "What is the capital of Mongolia?": "The documents don't say.",
    }
    for question, sentence in told.items():
        assert answered(question, BILLING).content == sentence == get_no_answer_text(question)
        assert contains_no_answer_text(f"**Mongolia**\n\n{sentence}")
        assert says_absent(sentence)
    refused = json.loads(
        answered("Was ist die Hauptstadt der Mongolei?", BILLING, formatting_instructions="JSON").content
    )
    assert refused["answer"] == "Das steht nicht in den Dokumenten."


def test_small_words_of_a_language_are_small_only_in_it() -> None:
    assert extract_query_terms("Was ist die Hauptstadt der Mongolei?") == ["hauptstadt", "mongolei"]
    assert "war" in extract_query_terms("When did the war end?")
    assert [detect_language(one) for one in ("Wie hei\u00dft der Hausmeister?", "Who is it?", "1234")] == [
        "de",
        "en",
        "",
    ]


def test_a_word_is_not_stemmed_to_a_small_one() -> None:
    assert extract_terms("one ones on ore ores or use used using us ate at") == [
        "one", "one", "on", "ore", "ore", "or", "use", "use", "use", "us", "ate", "at",
    ]  # fmt: skip
    assert [is_legacy_stop_stem(word) for word in ("used", "ore", "or", "river")] == [True, True, False, False]


@pytest.mark.parametrize(
    ("question", "bare"),
    [
        ("What is the warranty of the Atlas 300 in one sentence?", "What is the warranty of the Atlas 300?"),
        ("Tell me the sick leave rules in at most 10 words", "Tell me the sick leave rules"),
        ("Give me a bullet list of the pension rules", "pension rules"),
        ("Summarise the rules in two sentences", "Summarise the rules"),
        ("How many days? Answer as JSON.", "How many days?"),
        ("Which rule has two sentences?", "Which rule has two sentences?"),
        ("What does the table on page 3 list?", "What does the table on page 3 list?"),
        ("in one sentence", "in one sentence"),
    ],
)
def test_wishes_for_the_form_are_not_looked_for(question: str, bare: str) -> None:
    assert without_form(question) == bare


def test_a_wish_for_the_form_does_not_spoil_the_answer() -> None:
    text = "## Care\n\nThe warranty of the pump is 3 years. Do not use chlorine. One filter is enough."
    assert answered("What is the warranty of the pump in one sentence?", passage(text)).content == (
        "The warranty of the pump is 3 years. [1]"
    )


def test_a_question_of_several_parts_is_answered_part_by_part() -> None:
    assert parts_of("When do backups run, who owns it, and when is the test?") == [
        "When do backups run?", "Who owns it?", "When is the test?",
    ]  # fmt: skip
    assert parts_of("When is the meeting and where?") == ["When is the meeting and where?"]
    assert parts_of("When the pump is open, who closes it?") == ["When the pump is open, who closes it?"]
    output = answered("When do backups of the billing database run, and who is the mayor?", BILLING)
    assert output.content == (
        "Backups of the billing database run every night at 02:30. [1]\n\nWho is the mayor? The documents don't say."
    )


def test_a_table_keeps_its_head_wherever_it_is_shown() -> None:
    head = "| Pump | Flow | Price (EUR) |\n| --- | --- | --- |\n"
    one, other = "| Atlas 100 | 45 | 289 [1] |", "| Atlas 300 | 85 | 459 [1] |"
    compared = answered("Compare the Atlas 100 and the Atlas 300.", PUMPS, topics=("Atlas 100", "Atlas 300"))
    assert compared.content == f"**Atlas 100**\n\n{head}{one}\n\n**Atlas 300**\n\n{head}{other}"
    asked = "What is the price of the Atlas 300?"
    assert answered(asked, PUMPS, formatting_instructions="Markdown table").content == head + other


def test_the_words_of_a_head_belong_to_its_rows_and_figures_can_be_compared() -> None:
    assert answered("What is the flow of the Atlas 100?", PUMPS).content == "Pump: Atlas 100; Flow: 45. [1]"
    assert answered("Which pump has the highest flow?", PUMPS).content == "Pump: Atlas 300; Flow: 85. [1]"
    assert answered("Which pump is the cheapest?", PUMPS).content == "Pump: Atlas 100; Price (EUR): 289. [1]"


def test_labels_and_questions_are_no_answers_but_what_follows_them_is() -> None:
    bread = passage("Rye bread. Mix flour and water. The bread keeps for six days. Do not freeze it.")
    assert answered("Can rye bread be frozen?", bread).content == "Do not freeze it. [1]"
    faq = passage("**What is the training budget?**\n\nIt is 1,000 EUR per year.\n\n**Who pays?**\n\nThe company does.")
    assert answered("What is the training budget?", faq).content == "It is 1,000 EUR per year. [1]"
    assert answered("Budget?", passage("Budget.")).citations == ()


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        ("What may employees claim per night?", "Employees may claim 45 EUR per night.",
         "Employees may claim 60 EUR per night."),
        ("When is the travel desk open?", "The travel desk is open from 08:00 to 16:00.",
         "The travel desk is open from 09:00 to 17:00."),
        ("Who is the director of travel?", "The director of travel is Joan Mills.",
         "The director of travel is Peter Quinn."),
        ("Where is the head office?", "The head office is in Dublin.", "The head office is in Cork."),
        ("How many days a week may I work from home?", "You can work from home two days a week.",
         "Employees may work from home up to three days a week."),
        ("What is the training budget?", "Every employee has a training budget of 1,200 EUR per year.",
         "The training budget is 1,000 EUR per year."),
    ],
)  # fmt: skip
def test_documents_that_disagree_are_named(question: str, one: str, other: str) -> None:
    output = answered(question, passage(one, 1, source="a.md"), passage(other, 2, source="b.md"))
    assert output.content.startswith("The sources disagree: ")
    assert f"a.md: \u201c{one.rstrip('.')}\u201d" in output.content
    assert f"b.md: \u201c{other.rstrip('.')}\u201d" in output.content
    assert len(output.citations) == 2


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        ("What is the notice period?", "The notice period is 3 months.", "The notice period of managers is 6 months."),
        ("How many days of holiday?", "Employees in Sweden have 28 days of holiday.",
         "Employees in Norway have 25 days of holiday."),
        ("Is parking free?", "Parking is free in Oslo.", "Parking is free in Lisbon."),
    ],
)  # fmt: skip
def test_documents_that_speak_of_different_things_do_not_disagree(question: str, one: str, other: str) -> None:
    output = answered(question, passage(one, 1, source="a.md"), passage(other, 2, source="b.md"))
    assert "disagree" not in output.content


def test_a_year_chooses_between_documents_of_different_years() -> None:
    said = "The mileage rate for cars is {} EUR per kilometre."
    old = passage(said.format("0.30"), 1, source="expenses-2023.md", title="Expenses 2023")
    new = passage(said.format("0.38"), 2, source="expenses-2024.md", title="Expenses 2024")
    assert answered("What is the mileage rate in 2024?", old, new).content == f"{said.format('0.38')} [1]"
    both = answered("What is the mileage rate?", old, new).content
    assert both.startswith("It differs by year: expenses-2023.md: ")
    assert "expenses-2024.md: " in both
