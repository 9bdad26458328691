"""What a question asks for is answered by what says that, and not by its neighbour: other numbers, kinds, sections."""

import pytest

from agent.grounded_answers import Tailoring, TailorInput, read
from agent.grounded_answers.claims import unwrapped
from agent.grounded_answers.conditions import conditions_of, contradicts
from agent.grounded_answers.values import mentions
from agent.grounded_answers.verbs import verbs_of
from tests.unit.grounded_answers.passages import answered, ground, passage

TRIAL = passage(
    "The yield was 23% higher with 40 trees per hectare. Soil moisture was measured at a depth of 20 cm. "
    "The repair of the valve in hall 1 costs 2,850 euros.",
    heading_path=["Trial"],
)
CHANGES = passage(
    "# Changes\n\n## 4.1.1 (2026-06-30)\n\nSearch found no messages with umlauts.\n\n"
    "## 4.1.0 (2026-05-07)\n\n### Added\n\nShared mailboxes with up to 40 members.",
    heading_path=["Changes"],
)
LOGS = passage(
    "Transaction logs are shipped every 5 minutes. Full backups are kept for 35 days. "
    "Either party may terminate the agreement with 30 days' notice.",
    heading_path=["Operations"],
)
STOCK = passage(
    "## Invoices\n\n| Invoice | Supplier | Status |\n| --- | --- | --- |\n| INV-1 | Nordlicht | paid |\n"
    "| INV-2 | Papyrus | open |\n| INV-3 | Papyrus | open |\n| INV-4 | Falk | disputed |",
    heading_path=["Invoices"],
)


def is_held_back(content: str) -> bool:
    return content.startswith("The documents don't")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("By how much was the yield higher with 40 trees?", "23% higher"),
        ("At what depth was soil moisture measured?", "20 cm"),
        ("What does the valve repair in hall 1 cost?", "2,850"),
    ],
)
def test_a_number_in_the_question_is_found(question: str, said: str) -> None:
    content = answered(question, TRIAL).content
    assert said in content
    assert not is_held_back(content)


@pytest.mark.parametrize(
    "question",
    [
        "By how much was the yield higher with 80 trees?",
        "What was the soil moisture at a depth of 50 cm?",
        "What does the valve repair in hall 2 cost?",
    ],
)
def test_what_is_said_of_another_number_does_not_answer(question: str) -> None:
    assert is_held_back(answered(question, TRIAL).content)


def test_conditions_are_numbers_with_what_they_tell_apart() -> None:
    (tree,) = conditions_of("How much with 80 trees?", frozenset())
    assert (tree.text, tree.is_label) == ("80 trees", False)
    assert contradicts(tree, "with 40 shade trees")
    assert not contradicts(tree, "with 40 or 80 trees")
    assert not contradicts(tree, "the trees are old")
    assert conditions_of("May I take 15 days in a row?", frozenset()) == (), "a rule is asked about with any amount"
    assert conditions_of("What does section 5 say?", frozenset()) == ()


def test_a_version_is_meant_as_it_is_written() -> None:
    assert answered("When was version 4.1.1 released?", CHANGES).content == "4.1.1 (2026-06-30) [1]"
    assert is_held_back(answered("When was version 4.3.0 released?", CHANGES).content)
    assert is_held_back(answered("What is the maximum of members in 3.9?", CHANGES).content)


def test_which_version_is_answered_by_the_heading_above() -> None:
    content = answered("Which version added shared mailboxes?", CHANGES).content
    assert content == "4.1.0 (2026-05-07) [1] Shared mailboxes with up to 40 members. [1]"


@pytest.mark.parametrize(
    "question",
    [
        "How long are transaction logs kept?",  # "every 5 minutes" says how often
        "When was the agreement terminated?",  # "with 30 days' notice" says when it may be
    ],
)
def test_how_often_is_not_how_long_and_a_rule_is_no_event(question: str) -> None:
    assert is_held_back(answered(question, LOGS).content)


def test_how_long_and_how_often_are_answered_by_their_own_kind() -> None:
    assert answered("How long are full backups kept?", LOGS).content == "Full backups are kept for 35 days. [1]"
    assert answered("How often are transaction logs shipped?", LOGS).content.startswith("Transaction logs are shipped")


def test_a_list_is_all_rows_that_hold_what_is_told_of_them() -> None:
    listed = answered("List all open invoices.", STOCK).content
    assert ("INV-2" in listed, "INV-3" in listed) == (True, True)
    assert ("INV-1" in listed, "INV-4" in listed) == (False, False)
    every = answered("List all invoices.", STOCK).content
    assert all(f"INV-{number}" in every for number in range(1, 5))
    sent = answered("How many invoices did Papyrus send?", STOCK).content
    assert sent.count("INV-") == 2
    assert "INV-1" not in answered("List all invoices of Siemens.", STOCK).content


def test_a_number_that_is_said_is_not_counted_again() -> None:
    farm = passage("The farm has 14 turbines.\n\n| Turbine | Year |\n| --- | --- |\n| T1 | 2001 |\n| T2 | 2002 |")
    assert answered("How many turbines does the farm have?", farm).content == "The farm has 14 turbines. [1]"


def test_a_section_is_found_by_its_number() -> None:
    first = passage("## 4. Liability\n\nThe liability is limited.", 1, heading_path=["4. Liability"])
    second = passage("## 5. Termination\n\nThe liability ends with notice.", 2, heading_path=["5. Termination"])
    assert answered("What does section 5 say about liability?", first, second).content.startswith("The liability ends")
    assert answered("What does section 4 say about liability?", first, second).content.startswith("The liability is")


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is the maximum water temperature?", "The water temperature stays between 2 and 60 degrees."),
        ("What is the command for a restart of the pooler?", "For a restart of the pooler run `pooler --restart`."),
        ("What is the hourly rate for additional work?", "Additional work is charged at EUR 145 per hour."),
        ("Was the sponsorship of the regatta approved?", "The sponsorship of the regatta was rejected."),
        ("At what temperature is plasma stored?", "## Storage\n\nThe temperature of plasma is -80 degrees."),
    ],
)
def test_what_is_put_otherwise_is_an_answer_without_reserve(question: str, text: str) -> None:
    assert not is_held_back(answered(question, passage(text)).content)


def test_who_approved_it_is_not_answered_by_that_it_was_rejected() -> None:
    assert is_held_back(answered("Who approved the sponsorship?", passage("The sponsorship was rejected.")).content)


@pytest.mark.parametrize(
    ("question", "verbs"),
    [
        ("Who owns the orders database?", {"owns"}),
        ("When did Carlos join the board?", {"join"}),
        ("How many invoices did Papyrus Office send?", {"send"}),
        ("When was the agreement terminated?", {"terminated"}),
        ("Vem ansvarar för receptionen?", {"ansvarar"}),
        ("How many sick days may an apprentice take?", {"take"}),
        ("What is the rent of the office?", set()),
        ("What is the voltage of the A250?", set()),
    ],
)
def test_verbs_are_told_by_their_places(question: str, verbs: set[str]) -> None:
    assert verbs_of(question) == verbs


def test_a_bare_verb_is_not_quoted_as_missing() -> None:
    ledger = passage("Team Ledger restarts the payments database.")
    content = answered("Who owns the payments database?", ledger).content
    assert content.startswith("The documents don't say exactly that. The nearest they say:")
    assert "\u201cvoltage\u201d" in answered("What is the voltage of the payments database?", ledger).content


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ('{"answer": "It is 5 days [1]."}', "It is 5 days [1]."),
        ('```json\n{"answer": "It is 5 days [1].", "sources": [1]}\n```', "It is 5 days [1]."),
        ('{"answer": "It is \\"5\\" days [1].\\nAnd mo', 'It is "5" days [1].\nAnd mo'),
        ("It is 5 days [1].", "It is 5 days [1]."),
        ('{"days": 5}', '{"days": 5}'),
    ],
)
def test_a_reply_in_json_that_nobody_asked_for_is_the_text_in_it(reply: str, text: str) -> None:
    assert unwrapped(reply) == text


def test_a_sentence_in_a_language_of_its_own_does_not_stand() -> None:
    (verdict,) = ground(question="What are the rules for holidays?").check(
        read("Alla får ledigt så mycket de vill och det är bra [1].")
    )
    assert "neither in the language of the question" in verdict.problem
    (verdict,) = ground(question="Hur är det med semester för de anställda?").check(
        read("Det är den som leder avdelningen som har att godkänna det [1].")
    )
    assert verdict.problem == ""


def test_number_words_that_are_written_together_are_numbers() -> None:
    assert [set(one.keys) for one in mentions("trettiosju dagar, siebenunddreißig Tage")] == [{("number", "37")}] * 2
    assert mentions("The A250 is there.") == [], "digits of an identifier are no number"


def test_the_documents_own_words_replace_an_answer_of_which_nothing_stands() -> None:
    wanted = TailorInput(user_query="How long are full backups kept?", context_chunks=(LOGS,))
    told = Tailoring(wanted).instead()
    assert told is not None
    assert told.output.content == (
        "The documents don't say what the model wrote. In their own words:\n\nFull backups are kept for 35 days. [1]"
    )
    nearly = wanted.model_copy(update={"user_query": "How long are full backups of the payroll kept?"})
    assert Tailoring(nearly).instead() is None
