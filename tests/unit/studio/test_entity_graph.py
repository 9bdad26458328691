"""The graph of what there is: search, details, and the shortest path between two entities."""

import pytest

from gateway.features.studio.engine.entity_graph import Entity, EntityGraph, EntityType, Link, LinkKind


def entity(kind: EntityType, name: str, description: str = "", title: str = "") -> Entity:
    return Entity(f"{kind}:{name}", kind, name, title, description)


def link(source: str, kind: LinkKind, target: str) -> Link:
    return Link(source, target, kind)


GRAPH = EntityGraph(
    [
        entity("room", "support", "Answers customers", title="Support Team"),
        entity("room", "open", "Uses what there is"),
        entity("tool", "calculator", "Compute a sum"),
        entity("tool", "weather", "Weather of a city"),
        entity("skill", "summarize", "Summarise texts"),
        entity("server", "orders@support", "ready"),
        entity("collection", "handbook", "3 documents"),
        entity("prompt", "support", "How we write"),
    ],
    [
        link("room:support", "uses", "tool:calculator"),
        link("room:support", "has", "server:orders@support"),
        link("skill:summarize", "uses", "tool:calculator"),
        link("room:open", "may use", "tool:calculator"),
        link("room:open", "may use", "tool:weather"),
        link("room:open", "uses", "tool:gone"),
        link("prompt:support", "prompts", "room:support"),
    ],
)


@pytest.mark.row("S002-20")
@pytest.mark.parametrize(
    ("query", "kind", "expected"),
    [
        ("calculator", None, ["tool:calculator"]),
        ("CALCULATOR", None, ["tool:calculator"]),
        ("support", None, ["prompt:support", "room:support", "server:orders@support"]),
        ("support", "room", ["room:support"]),
        ("support team", None, ["room:support"]),
        ("weather of a city", "tool", ["tool:weather"]),
        ("calculater", None, ["tool:calculator"]),
        ("", "room", ["room:open", "room:support"]),
        ("nothing of this", None, []),
    ],
)
def test_the_best_matches_come_first(query: str, kind: EntityType | None, expected: list[str]) -> None:
    found = [one.id for one in GRAPH.search(query, kind)]
    assert found[: len(expected)] == expected
    assert bool(found) == bool(expected)


def test_a_search_returns_at_most_as_many_as_asked_for() -> None:
    assert len(GRAPH.search("", None, 3)) == 3


@pytest.mark.row("S002-21")
def test_the_links_of_an_entity_go_out_and_come_in() -> None:
    assert {(one.source, one.kind, one.target) for one in GRAPH.list_links("room:support")} == {
        ("room:support", "uses", "tool:calculator"),
        ("room:support", "has", "server:orders@support"),
        ("prompt:support", "prompts", "room:support"),
    }
    assert GRAPH.list_links("collection:handbook") == []


def test_a_link_to_what_is_gone_is_left_out() -> None:
    assert [one.target for one in GRAPH.links if one.source == "room:open"] == ["tool:calculator", "tool:weather"]


@pytest.mark.row("S002-22")
def test_the_shortest_path_is_told_in_words() -> None:
    path = GRAPH.find_path("prompt:support", "skill:summarize")
    assert path is not None
    assert GRAPH.describe_path("prompt:support", path) == [
        "The prompt support prompts the room support.",
        "The room support uses the tool calculator.",
        "The tool calculator is used by the skill summarize.",
    ]
    back = GRAPH.find_path("skill:summarize", "prompt:support")
    assert back is not None
    assert [one.source for one in back] == ["skill:summarize", "room:support", "prompt:support"]


def test_a_path_of_named_things_is_preferred_to_one_over_a_room_that_names_nothing() -> None:
    through_all = GRAPH.find_path("tool:weather", "tool:calculator")
    assert through_all is not None
    assert {one.kind for one in through_all} == {"may use"}
    named = GRAPH.find_path("skill:summarize", "tool:calculator")
    assert named is not None
    assert [one.kind for one in named] == ["uses"]


def test_no_relation_and_the_same_entity() -> None:
    assert GRAPH.find_path("collection:handbook", "room:support") is None
    assert GRAPH.find_path("room:open", "room:open") == []


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("tool:weather", "tool:weather"),
        ("weather", "tool:weather"),
        ("Support Team", "room:support"),
        ("Room:Support", "room:support"),
        ("room:support team", "room:support"),
        ("TOOL:Weather", "tool:weather"),
        ("support", None),
        ("nothing", None),
    ],
)
def test_an_entity_is_found_by_its_id_or_a_name_that_is_its_own(name: str, found: str | None) -> None:
    entity = GRAPH.find(name)
    assert (entity.id if entity is not None else None) == found


def test_what_may_be_meant_is_suggested() -> None:
    assert sorted(GRAPH.suggest("support")) == ["prompt:support", "room:support"]
    assert GRAPH.suggest("tool:wether") == ["tool:weather"]
    assert GRAPH.suggest("zzz") == []
