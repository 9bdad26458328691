"""The gates over a whole run: each passes or fails with its reason, and is left out where it does not apply."""

import pytest

from agent.core.models import Room, Source
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.execution.gates import check_gates
from agent.run_context.outputs import parse_cited_ids
from tests.support.builders import (
    RUN_ID,
    Placed,
    called,
    completion_step,
    created,
    finished,
    judged,
    log,
    planned,
    returned,
    source,
    started,
    tool_step,
)

CITING = Room(id="r", citations=True)
TWO_STEPS = planned(tool_step("s1"), completion_step("s9", "s1"))


def verdicts(state: RunState, answer: str = "an answer", *sources: Source) -> dict[str, tuple[bool, str]]:
    return {gate.gate: (gate.passed, gate.reason) for gate in check_gates(state, answer, sources)}


def requesting(*tools: object, events: tuple[Placed, ...] = ()) -> RunState:
    return fold(RUN_ID, log(created(metadata={"tool_calls": list(tools)}), TWO_STEPS, *events))


def citing(*steps: str) -> RunState:
    plan = planned(*(tool_step(step) for step in steps), completion_step("s9", *steps))
    return fold(RUN_ID, log(created(room=CITING), plan))


PLAIN = fold(RUN_ID, log(created(), TWO_STEPS))


@pytest.mark.parametrize(
    ("answer", "passed", "reason"),
    [("42", True, "there is an answer"), ("", False, "no answer"), (" \n\t", False, "no answer")],
)
def test_there_must_be_an_answer(answer: str, passed: bool, reason: str) -> None:
    assert verdicts(PLAIN, answer) == {"answer_present": (passed, reason)}


RAN = (started("s1"), called("s1", "search"), returned("s1", "search"), finished("s1"), judged("s1"))
INTENDED = (started("s1"), called("s1", "search"))


@pytest.mark.parametrize(
    ("wanted", "events", "passed", "reason"),
    [
        (({"tool": "search", "args": {}},), RAN, True, "every requested tool ran"),
        (({"name": "search"},), RAN, True, "every requested tool ran"),
        (({"tool": "search"}, {"tool": "web"}, {"tool": "calc"}), RAN, False, "never ran: calc, web"),
        (({"tool": "search"},), INTENDED, False, "never ran: search"),
        (({"tool": "search"},), (), False, "never ran: search"),
    ],
)
def test_every_tool_the_caller_named_must_have_run(
    wanted: tuple[object, ...], events: tuple[Placed, ...], passed: bool, reason: str
) -> None:
    assert verdicts(requesting(*wanted, events=events))["required_tools"] == (passed, reason)


def test_a_tool_that_the_caller_named_as_its_room_does_has_run_under_its_registered_name() -> None:
    state = requesting({"tool": "files__search"}, events=RAN)
    checked = check_gates(state, "an answer", (), resolve_tool=lambda name: name.removeprefix("files__"))
    assert all(gate.passed for gate in checked)


def test_a_tool_that_ran_in_any_attempt_has_run() -> None:
    events = (started("s1"), called("s1"), returned("s1"), finished("s1"), started("s1", 2), finished("s1", attempt=2))
    assert verdicts(requesting({"tool": "search"}, events=events))["required_tools"][0]


@pytest.mark.parametrize("calls", [None, [], "search"])
def test_without_named_tools_there_is_no_such_gate(calls: object) -> None:
    state = fold(RUN_ID, log(created(metadata={"tool_calls": calls}), TWO_STEPS))
    assert list(verdicts(state)) == ["answer_present"]


@pytest.mark.parametrize(
    ("answer", "passed", "reason"),
    [
        ("It is so [1], and so [2].", True, "every citation resolves"),
        ("It is so.", True, "every citation resolves"),
        ("It is so [3] [1] [7] [3].", False, "no source supports [3], [7]"),
        ("None [0].", False, "no source supports [0]"),
        ("Code `x[9]` and\n```\ny[8]\n```\n[1]", True, "every citation resolves"),
        ("A link [9](https://a.se).", True, "every citation resolves"),
    ],
)
def test_every_citation_needs_its_source(answer: str, passed: bool, reason: str) -> None:
    found = verdicts(citing("s1"), answer, source(1), source(2, "other.pdf"))
    assert found["citations_resolve"] == (passed, reason)


def test_elsewhere_brackets_are_no_citations() -> None:
    assert list(verdicts(PLAIN, "see [9]")) == ["answer_present"]


def test_a_plan_that_looked_things_up_must_bring_evidence_where_it_is_asked_for() -> None:
    assert verdicts(citing("s1"))["evidence_found"] == (False, "no step returned any evidence")
    assert verdicts(citing("s1"), "a", source(1))["evidence_found"] == (True, "1 sources support the answer")
    assert "evidence_found" not in verdicts(citing()), "a plain answer rests on nothing"


@pytest.mark.parametrize(
    ("answer", "ids"),
    [
        ("[2] then [1] then [2]", [2, 1]),
        ("[12][3]", [12, 3]),
        ("[1234] [a] [] [1", []),
        ("`[1]` [2]", [2]),
        ("```py\n[1]\n``` [3]", [3]),
        ("[1](x) [4]", [4]),
    ],
)
def test_the_numbers_an_answer_cites(answer: str, ids: list[int]) -> None:
    assert parse_cited_ids(answer) == ids
