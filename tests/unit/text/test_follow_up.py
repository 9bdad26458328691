"""Which messages refer to the one before, what they say themselves, and where joined questions are parted."""

import pytest

from agent.text.follow_up import (
    asks,
    has_personal_pronoun,
    is_written_as_name,
    list_names,
    list_own_terms,
    names_subject,
    read_alone,
    refers_back,
)
from agent.text.question_parts import list_subject_words, split_phrases
from agent.text.requested_form import split_questions


@pytest.mark.parametrize(
    "message",
    [
        "And per month?",
        "Who approves it?",
        "Och per månad?",
        "Und in Wien?",
        "Wann muss sie bezahlt werden?",
        "How long?",
    ],
)
def test_a_message_that_needs_the_one_before_refers_back(message: str) -> None:
    assert refers_back(message)


@pytest.mark.parametrize(
    "message",
    ["Who approves the invoices?", "Vem godkänner fakturor?", "Wie lange dauert die Probezeit?", "What about parking?"],
)
def test_a_message_with_a_subject_of_its_own_does_not(message: str) -> None:
    assert not refers_back(message)


@pytest.mark.parametrize(
    ("phrase", "message", "is_name"),
    [
        ("Elle", "The difference between Elle and Vogue", True),
        ("Elle", "Elle vs Vogue", False),
        ("It", "Thanks. It versus the sauna?", False),
        ("it", "Compare it with the sauna", False),
        ("IT", "IT vs sales", True),
    ],
)
def test_a_capital_in_the_middle_of_a_sentence_begins_a_name(phrase: str, message: str, is_name: bool) -> None:
    assert is_written_as_name(phrase, message) == is_name


def test_a_compound_names_a_subject_where_the_language_writes_it_as_one_word() -> None:
    assert names_subject("Wie lange dauert die Probezeit?")
    assert names_subject("Hur lång är provanställningen?")
    assert not names_subject("How long is probation?")


def test_own_terms_are_content_words_and_units_but_no_words_of_asking() -> None:
    assert [sorted(forms) for forms in list_own_terms("And how much per month in Oslo?")] == [["month"], ["oslo"]]
    assert list_own_terms("And how long?") == ()


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who feeds the cats and how high is the fence?", ["Who feeds the cats", "how high is the fence?"]),
        ("Vem matar katterna och hur stor är trädgården?", ["Vem matar katterna", "hur stor är trädgården?"]),
        ("Wer füttert die Katzen und wie groß ist der Garten?", ["Wer füttert die Katzen", "wie groß ist der Garten?"]),
        ("Who feeds the cats and when?", ["Who feeds the cats and when?"]),
        ("When was the old barn built and who built it?", ["When was the old barn built and who built it?"]),
        ("Cats and dogs and how they live", ["Cats and dogs and how they live"]),
        ("How high is the fence and who is the gardener?", ["How high is the fence", "who is the gardener?"]),
        ("How high is the fence, and can I keep a goat?", ["How high is the fence", "can I keep a goat?"]),
        ("Hur högt är staketet, och får jag ha en katt?", ["Hur högt är staketet", "får jag ha en katt?"]),
        (
            "Wie hoch ist der Zaun, und darf ich eine Ziege halten?",
            ["Wie hoch ist der Zaun", "darf ich eine Ziege halten?"],
        ),
        ("Who feeds the cats and who approves?", ["Who feeds the cats and who approves?"]),
        (
            "Hi, two questions. Who feeds the cats? How high is the fence?",
            ["Who feeds the cats?", "How high is the fence?"],
        ),
        ("The barn leaks. Who repairs it?", ["The barn leaks. Who repairs it?"]),
    ],
)
def test_joined_questions_are_parted_where_both_name_their_subject(question: str, parts: list[str]) -> None:
    assert split_questions(question) == parts


@pytest.mark.parametrize(
    ("question", "phrases"),
    [
        ("How high are the fence and the gate?", ["How high are the fence", "the gate"]),
        ("I need: the hay, the oats and the salt lick.", ["the hay", "the oats", "the salt lick"]),
        ("Wie hoch sind der Zaun und das Tor?", ["Wie hoch sind der Zaun", "das Tor"]),
        ("How high is the fence?", ["How high is the fence?"]),
        ("Who feeds the cats and when?", ["Who feeds the cats and when?"]),
    ],
)
def test_a_question_is_parted_into_the_things_that_it_asks_for(question: str, phrases: list[str]) -> None:
    assert split_phrases(question) == phrases


@pytest.mark.parametrize(
    ("sentence", "alone"),
    [
        ("And the fence?", "the fence?"),
        ("Also, who paints the barn?", "who paints the barn?"),
        ("\u00bfY el establo?", "el establo?"),
        ("And in Norway?", ""),
        ("Och i Norge?", ""),
        ("And who paints it?", ""),
        ("And when?", ""),
    ],
)
def test_a_sentence_is_read_alone_unless_it_adds_to_the_subject_before(sentence: str, alone: str) -> None:
    assert read_alone(sentence) == alone


def test_thanks_are_no_message_that_a_later_one_refers_to() -> None:
    assert not asks("Thanks!")
    assert asks("How long is probation?")


def test_the_subject_of_a_part_stands_behind_an_article_or_a_copula() -> None:
    assert list_subject_words("who is the mayor of Bremen") == ["mayor"]
    assert list_subject_words("who approves") == []


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("How many days of leave do I get in Lisbon?", ["Lisbon"]),
        ("What is the warranty of the Brewmaster 4?", ["Brewmaster 4"]),
        ("What does a poster A1 cost?", ["A1"]),
        ("Was kostet der Drucker X200 mit Papier?", ["X200"]),
        ("Vad kostar lägret i Uppsala?", ["Uppsala"]),
        ("Where is Dr. Smith? Is the office open?", []),
        ("What is the price of a mug?", []),
    ],
)
def test_names_are_told_from_the_other_words_of_a_question(message: str, names: list[str]) -> None:
    assert [one.name for one in list_names(message)] == names


@pytest.mark.parametrize(
    ("message", "is_personal"),
    [
        ("How do I reach him?", True),
        ("Vad rapporterade han?", True),
        ("Is it expensive?", False),
        ("Wer ist da?", False),
    ],
)
def test_a_pronoun_for_a_person_is_told_from_one_for_a_thing(message: str, is_personal: bool) -> None:
    assert has_personal_pronoun(message) == is_personal
