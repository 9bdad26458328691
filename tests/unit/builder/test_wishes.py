"""What rules read off a message of a conversation: where the documents are, and what is to be different."""

import pytest

from agent.builder.changes import changed
from agent.builder.wishes import goes_on, not_understood, sources_named
from agent.knowledge.pipeline_check import PipelineInvalidError
from agent.knowledge.templates import from_template, list_templates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("help me index these research papers in papers", "papers"),
        ("the source is src_0123abcd.", "src_0123abcd"),
        ("index https://site.example/docs, please", "https://site.example/docs"),
        ("index '/srv/my files/a b'", "/srv/my files/a b"),
        ("index my kelp folder", "kelp"),
        ("read everything below the folder called letters", "letters"),
        ("index reports/2024 for me", "reports/2024"),
        ("papers", "papers"),
        ("gdrive:1AbC-x", "gdrive:1AbC-x"),
    ],
)
def test_a_source_is_found_in_words(text: str, expected: str) -> None:
    assert expected in [words for words, _ in sources_named(text)]


def test_what_can_be_nothing_else_comes_first_and_is_told_apart() -> None:
    found = sources_named("in the folder, take /srv/papers or and/or src_12")
    assert found[:2] == [("src_12", True), ("/srv/papers", True)]
    assert ("and/or", False) in found
    assert sources_named("help me index my papers") == []
    assert len(sources_named(" ".join(f"/a{n}" for n in range(100)))) == 8


def test_a_pipeline_is_changed_only_as_far_as_something_is_named() -> None:
    reports = from_template("reports", {"chunk_size": 1000})
    assert changed(reports, "what about the tables in it?") is None
    bigger = changed(reports, "table size 5000")
    assert bigger is not None
    assert bigger[0] == from_template("reports", {"chunk_size": 1000, "table_size": 5000})
    assert bigger[1] == "you want table size 5000"
    notes = changed(reports, "use the notes template with overlap 50")
    assert notes is not None
    assert notes[0] == from_template("notes", {"chunk_size": 1000, "overlap": 50})
    assert changed(reports, "the reports template, please") == (reports, "you want the template reports")
    with pytest.raises(PipelineInvalidError):
        changed(from_template("windows"), "overlap 5000")


def test_a_pipeline_of_no_template_takes_sizes_and_a_template() -> None:
    own = from_template("notes").model_copy(update={"template": ""})
    sized = changed(own, "chunk size 500")
    assert sized is not None
    assert sized[0].nodes == from_template("notes", {"chunk_size": 500}).nodes
    named = changed(own, "use the template reports")
    assert named is not None
    assert named[0] == from_template("reports")
    assert "use the template NAME" in not_understood(own)


def test_every_template_says_what_can_be_set() -> None:
    for one in list_templates():
        numbers = [knob.name for knob in one.parameters if knob.value_schema.get("type") in ("integer", "number")]
        assert all(name.replace("_", " ") in not_understood(one.pipeline) for name in numbers)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("go on", True), ("please validate it", True), ("why can you not read it?", False), ("abandon", False)],
)
def test_what_asks_for_the_next_thing(text: str, expected: bool) -> None:
    assert goes_on(text) is expected
