"""The catalogue as the planner sees it: the entries that matter, as text that fits."""

import pytest

from agent.tools.catalogue import SHORTLIST, Catalogue, SkillCard, stem, words
from tests.unit.planning.kitchen import CATALOGUE, spec

MANY = Catalogue(
    skills=tuple(SkillCard(f"skill-{n:02}", f"Handles the subject number {n:02}.") for n in range(15)),
    tools=(
        spec("invoice_search", {}, description="Find invoices of a customer."),
        *(spec(f"tool_{n:02}", {}, description=f"Serves the purpose {n:02}.") for n in range(15)),
        spec("weather", {}, description="Forecasts.", keywords=("umbrella", "raining")),
    ),
)


def test_entries_are_found_by_their_exact_names() -> None:
    assert CATALOGUE.names()[:3] == ["deep_research", "summarise-text", "calculator"], "skills first"
    skill, tool = CATALOGUE.skill("deep_research"), CATALOGUE.tool("calculator")
    assert (skill is not None, tool is not None) == (True, True)
    assert CATALOGUE.skill("calculator") is None
    assert CATALOGUE.tool("Calculator") is None


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("find the invoices of Acme", "invoice_search"),
        ("do I need an umbrella", "weather"),
        ("is it raining", "weather"),
        ("subject number 07", "skill-07"),
    ],
)
def test_the_entry_with_most_to_do_with_a_question_scores_highest(question: str, best: str) -> None:
    scores = MANY.scores(question)
    assert max(scores, key=lambda name: scores[name]) == best


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    scores = MANY.scores("serves invoice")
    assert scores["invoice_search"] > scores["tool_03"] > 0


def test_a_question_with_nothing_in_common_scores_nothing() -> None:
    assert set(MANY.scores("zebra").values()) == {0}
    assert Catalogue().scores("anything") == {}


def test_a_shortlist_keeps_what_matters_and_the_order() -> None:
    short = MANY.shortlist("do I need an umbrella for the invoices of subject 14?", 3)
    assert short.names() == ["skill-14", "invoice_search", "weather"]


def test_a_shortlist_is_as_long_as_a_small_model_can_choose_from() -> None:
    assert len(MANY.shortlist("anything").names()) == SHORTLIST == 20
    assert CATALOGUE.shortlist("anything") is CATALOGUE, "what fits is left alone"


def test_a_shortlist_is_the_same_for_the_same_question() -> None:
    assert MANY.shortlist("zebra").names() == MANY.shortlist("zebra").names() == MANY.shortlist("the of").names()


def test_the_catalogue_as_text() -> None:
    small = Catalogue(
        skills=(SkillCard("tidy", "Tidies\n  up."),),
        tools=(
            spec("convert", {"amount": {"type": "number"}, "to": {"enum": ["EUR", 1]}, "any": {}}, ["amount"]),
            spec("now", {}),
        ),
    )
    assert small.render().splitlines() == [
        "Skills (inputs: task):",
        "- tidy: Tidies up.",
        "Tools:",
        '- convert(amount: number, to?: "EUR"|1, any?: any): The tool convert.',
        "- now(): The tool now.",
    ]


def test_sections_without_entries_are_left_out() -> None:
    assert Catalogue().render() == ""
    assert Catalogue(tools=CATALOGUE.tools).render().startswith("Tools:\n")
    assert "Tools:" not in Catalogue(skills=CATALOGUE.skills).render()


def test_descriptions_are_shortened_before_any_entry_is_dropped() -> None:
    long = Catalogue(skills=tuple(SkillCard(f"skill-{n}", "many words " * 60) for n in range(10)))
    whole, tight, tiny = long.render(8_000), long.render(1_200), long.render(300)
    assert "…" in whole, "no description is longer than 400 characters"
    assert [tight.count("- skill-"), len(tight) <= 1_200] == [10, True]
    assert 0 < tiny.count("- skill-") < 10
    assert len(tiny) <= 300
    assert all(line.endswith("…") for line in tiny.splitlines()[1:]), "an entry is dropped whole or not at all"


@pytest.mark.parametrize(
    ("one", "other"),
    [("invoices", "invoic"), ("calculations", "calculation"), ("reading", "read"), ("converted", "convert")],
)
def test_endings_do_not_count(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is the TIME?", {"time"}),
        ("read_file", {"read", "file"}),
        ("a b I", set()),
        ("Räksmörgås, tack!", {"räksmörgå", "tack"}),
        ("", set()),
    ],
)
def test_words_that_carry_meaning(text: str, expected: set[str]) -> None:
    assert words(text) == expected
