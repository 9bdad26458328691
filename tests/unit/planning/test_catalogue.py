"""The catalogue as the planner sees it: the entries that matter, as text that fits."""

import pytest

from agent.tools.catalogue import WHOLE_TOOLS, Catalogue, SkillCard
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
    assert CATALOGUE.list_names()[:3] == ["deep_research", "summarise-text", "calculator"], "skills first"
    skill, tool = CATALOGUE.get_skill("deep_research"), CATALOGUE.get_tool("calculator")
    assert (skill is not None, tool is not None) == (True, True)
    assert CATALOGUE.get_skill("calculator") is None
    assert CATALOGUE.get_tool("Calculator") is None


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("find the invoices of Acme", "invoice_search"),
        ("do I need an umbrella", "weather"),
        ("is it raining", "weather"),
        ("what purpose is number 07", "tool_07"),
    ],
)
def test_the_tool_with_most_to_do_with_a_question_scores_highest(question: str, best: str) -> None:
    scores = MANY.index.compute_scores(question)
    assert max(scores, key=lambda name: scores[name]) == best


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    scores = MANY.index.compute_scores("serves invoice")
    assert scores["invoice_search"] > scores["tool_03"] > 0


def test_a_question_with_nothing_in_common_scores_nothing() -> None:
    assert set(MANY.index.compute_scores("zebra").values()) == {0}
    assert Catalogue().index.compute_scores("anything") == {}


def test_the_catalogue_as_text() -> None:
    small = Catalogue(
        skills=(SkillCard("tidy", "Tidies\n  up. Not for code."),),
        tools=(
            spec(
                "convert",
                {
                    "amount": {"type": "number"},
                    "to": {"enum": ["EUR", 1]},
                    "any": {},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                },
                ["amount"],
                description="Convert money, e.g. euros. Uses yesterday's rates.",
            ),
            spec("now", {}),
            spec("tracker__add", {}, description="Add a ticket.", origin="mcp:tracker"),
        ),
    )
    view = small.show("anything")
    assert view.text.splitlines() == [
        "Skills (inputs: task):",
        "- tidy: Tidies up. Not for code.",
        "Tools:",
        '- convert(amount: number, to?: "EUR"|1, any?: any, tags?: string[], limit?: integer): '
        "Convert money, e.g. euros.",
        "- now(): The tool now.",
        "Tools of the server tracker:",
        "- tracker__add(): Add a ticket.",
    ]
    assert (view.is_whole, list(view.names)) == (True, small.list_names())


def test_sections_without_entries_are_left_out() -> None:
    assert Catalogue().show("q").text == ""
    assert Catalogue(tools=CATALOGUE.tools).show("q").text.startswith("Tools:\n")
    assert "Tools:" not in Catalogue(skills=CATALOGUE.skills).show("q").text


LARGE = Catalogue(
    skills=(SkillCard("tidy", "Tidies up."),),
    tools=(
        spec("calculator", {"expression": {"type": "string"}}, description="Evaluate arithmetic."),
        *(
            spec(f"{server}__{verb}_{n:02}", {"id": {"type": "string"}}, ["id"], origin=f"mcp:{server}",
                 description=f"{verb} number {n} of {server}.")
            for server in ("alpha", "beta", "zeta")
            for verb in ("read", "drop")
            for n in range(15)
        ),
        spec("zeta__umbrella_advice", {"town": {"type": "string"}}, description="Whether it rains.", origin="mcp:zeta"),
    ),
)  # fmt: skip


def test_of_a_large_catalogue_our_own_stays_and_what_fits_is_spelled_out() -> None:
    view = LARGE.show("Does it rain in Bergen?", max_chars=2_700)
    assert not view.is_whole
    assert list(view.names[:2]) == ["tidy", "calculator"]
    assert "- zeta__umbrella_advice(town?: string): Whether it rains." in view.text
    assert len(view.names) < len(LARGE.list_names())
    assert len(view.text) <= 2_700 + 400, "the limit is for the tools, not for the sentences around them"


def test_beside_the_best_ones_tools_are_shown_shortly() -> None:
    text = LARGE.show("Does it rain in Bergen?", max_chars=4_500).text.splitlines()
    assert "- zeta__umbrella_advice(town?: string): Whether it rains." in text
    assert sum("(id: string): " in line for line in text) == WHOLE_TOOLS - 1
    assert sum("(id): " in line for line in text) > 5


def test_what_is_left_out_is_told_by_server_with_every_name() -> None:
    text = LARGE.show("nothing of it", max_chars=2_700).text
    assert "spelled out by find_tools" in text
    assert "zeta (31 tools, names begin with zeta__):" in text
    assert "- by name only: " in text
    told = [spec.name.partition("__")[2] or spec.name for spec in LARGE.tools]
    assert [name for name in told if name not in text] == []


def test_a_tool_that_is_mentioned_is_always_spelled_out() -> None:
    for asked in ("call beta__drop_14", "please drop_14 now", "the drop 14 of beta"):
        assert "beta__drop_14" in LARGE.show(asked, max_chars=2_600).names, asked


def test_what_was_searched_for_comes_first() -> None:
    plain, searched = (LARGE.show("the quarterly report", query=query, max_chars=2_700) for query in ("", "rain"))
    assert "zeta__umbrella_advice" not in plain.names
    assert "zeta__umbrella_advice" in searched.names


def test_without_any_hint_the_servers_take_turns() -> None:
    shown = LARGE.show("zebra", max_chars=2_900).names[2:]
    assert {name.partition("__")[0] for name in shown} == {"alpha", "beta", "zeta"}


def test_every_tool_has_its_required_inputs_before_any_further_one_has_a_description() -> None:
    view = LARGE.show("Does it rain in Bergen?", max_chars=3_500)
    assert set(view.names) == set(LARGE.list_names())
    assert "- zeta__drop_14(id)" in view.text.splitlines()
    assert "(id): " in view.text


@pytest.mark.parametrize("asked", ["Soll ich einen Regenschirm mitnehmen?", "雨が降りますか"])
def test_descriptions_match_in_the_language_they_are_written_in(asked: str) -> None:
    tools = (
        *MANY.tools,
        spec("wetter", {}, description="Ob es regnet und man einen Regenschirm braucht."),
        spec("tenki", {}, description="雨が降るかどうか。"),
    )
    scores = Catalogue(tools=tools).index.compute_scores(asked)
    assert max(scores, key=lambda name: scores[name]) == ("wetter" if asked.isascii() else "tenki")
