"""The gates of incident rooms as a table: what passes, what fails and why, and what must be done again."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import JsonValue

from agent.core.events import GateChecked, StepOutput
from agent.core.models import JsonObject, Outcome, Room, Source
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.execution.gates import GATES, check_gates, has_room_gates, list_failed_gates
from agent.run_context.extensions import merge_extensions
from gateway.features.incident.tools import INCIDENT_EXTENSION
from tests.support.builders import (
    RUN_ID,
    Placed,
    called,
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

EXTENSIONS = merge_extensions((INCIDENT_EXTENSION,))
Values = Mapping[str, JsonObject]
ROOM = Room(
    id="incident",
    gates=("required_tools", "summary_consistent", "incident_evidence", "citations_resolve"),
    required_tools=("extract_entities", "summarize"),
    incident_tools=("search_incident_knowledge", "search_previous_issues"),
)
STEPS = planned(*(tool_step(f"s{n}", tool) for n, tool in enumerate((*ROOM.required_tools, *ROOM.incident_tools), 1)))
POLICY = {"title": "Severity levels", "source_type": "policy", "source_id": "policies/severity.md"}
TICKET = {"ticket": "OPS-1", "summary": "Slow"}


def tool_events(step: str, tool: str, **fields: Any) -> tuple[Placed, ...]:
    return started(step), called(step, tool), returned(step, tool, **fields), finished(step), judged(step)


EVERY_TOOL = tuple(
    event
    for n, tool in enumerate((*ROOM.required_tools, *ROOM.incident_tools), 1)
    for event in tool_events(f"s{n}", tool)
)


def state_of(prompt: str = "an incident", *events: Placed, room: Room = ROOM, **request: Any) -> RunState:
    return fold(RUN_ID, log(created(prompt, room=room, **request), STEPS, *events))


def check_gate(
    state: RunState,
    values: Values | None = None,
    answer: str = "an answer",
    sources: tuple[Source, ...] = (),
) -> dict[str, GateChecked]:
    outputs = {tool: (StepOutput(value=value, text="x"),) for tool, value in (values or {}).items()}
    return {gate.gate: gate for gate in check_gates(state, answer, sources, outputs, EXTENSIONS)}


def entities(*names: str) -> JsonObject:
    return {"entities": [{"text": name, "type": "name", "start": 0, "count": 1} for name in names]}


@pytest.mark.row("S004-32")
@pytest.mark.parametrize(
    ("names", "summary", "passes"),
    [
        (("api", "P1", "Anna"), "The API had a P1.", True),
        (("api", "P1", "Anna", "SEV2"), "The api had a p1.", True),
        (("api", "P1", "Anna"), "The api was slow.", False),
        (("api",), "Something was slow.", False),
        (("profile  picture",), "The Profile Picture is gone.", True),
    ],
)
def test_a_summary_names_at_least_half_of_the_entities(names: tuple[str, ...], summary: str, passes: bool) -> None:
    gate = check_gate(state_of(), {"extract_entities": entities(*names), "summarize": {"summary": summary}})[
        "summary_consistent"
    ]
    assert gate.passed is passes
    assert gate.redo == (() if passes else ("summarize",))


def test_the_entities_left_out_are_named() -> None:
    values: Values = {"extract_entities": entities("api", "P1", "Anna"), "summarize": {"summary": "the api"}}
    assert (
        check_gate(state_of(), values)["summary_consistent"].reason
        == "the summary leaves out 2 of 3 entities: P1, Anna"
    )


def test_of_a_long_text_the_most_frequent_entities_count() -> None:
    listed: list[JsonValue] = [{"text": f"word{n}", "count": 1} for n in range(200)]
    listed += [{"text": f"often{n}", "count": 9} for n in range(20)]
    values: dict[str, JsonObject] = {"extract_entities": {"entities": listed}}
    said = " ".join(f"often{n}" for n in range(20))
    assert check_gate(state_of(), {**values, "summarize": {"summary": said}})["summary_consistent"].passed


@pytest.mark.parametrize("values", [{}, {"extract_entities": entities()}, {"extract_entities": entities("a")}])
def test_without_entities_or_a_summary_there_is_nothing_to_compare(values: dict[str, JsonObject]) -> None:
    assert "summary_consistent" not in check_gate(state_of(), values)


@pytest.mark.row("S004-33")
@pytest.mark.parametrize(
    ("knowledge", "issues", "brief", "failures", "redo"),
    [
        ([POLICY], [TICKET], [], (), ()),
        ([], [TICKET], [], ("search_incident_knowledge found nothing", "no policy or runbook is cited"),
         ("search_incident_knowledge",)),
        ([POLICY], [], [], ("search_previous_issues found nothing",), ("search_previous_issues",)),
        ([TICKET], [TICKET], [], ("no policy or runbook is cited",), ("search_incident_knowledge",)),
        ([TICKET], [TICKET], [POLICY], (), ()),
        ([{"title": "Profile API runbook"}], [TICKET], [], (), ()),
        ([{"title": "x", "source_id": "docs/incident_policy.md"}], [TICKET], [], (), ()),
        ([{"title": "Metropolicyland"}], [TICKET], [], ("no policy or runbook is cited",),
         ("search_incident_knowledge",)),
    ],
)  # fmt: skip
def test_an_incident_rests_on_evidence(
    knowledge: list[Any], issues: list[Any], brief: list[Any], failures: tuple[str, ...], redo: tuple[str, ...]
) -> None:
    gate = check_gate(
        state_of(),
        {
            "search_incident_knowledge": {"results": knowledge},
            "search_previous_issues": {"results": issues},
            "build_incident_brief": {"citations": brief},
        },
    )["incident_evidence"]
    assert (gate.passed, gate.failures, gate.redo) == (not failures, failures, redo)


@pytest.mark.parametrize(
    ("prompt", "context", "required"),
    [
        ("an outage", {}, True),
        ("an invoice", {}, False),
        ("an invoice", {"priority": "P1"}, True),
        ("an invoice", {"severity": "p3"}, True),
        ("an invoice", {"priority": "Major"}, False),
    ],
)
def test_only_incidents_need_the_evidence_of_incidents(prompt: str, context: JsonObject, required: bool) -> None:
    assert ("incident_evidence" in check_gate(state_of(prompt, metadata={"context": context}))) is required


@pytest.mark.row("S004-31")
def test_the_tools_a_room_requires_must_have_succeeded() -> None:
    fine: dict[str, JsonObject] = {"extract_entities": entities(), "summarize": {"summary": "x"}}
    found: dict[str, JsonObject] = {"search_incident_knowledge": {}, "search_previous_issues": {}}
    boom: dict[str, Any] = {"error_code": "ERR_TOOL_FAILED", "error": "boom"}
    broken = (
        started("s2"), called("s2", "summarize"), returned("s2", "summarize", **boom), finished("s2", **boom),
        judged("s2", Outcome.REPLAN),
    )  # fmt: skip
    everything = check_gate(state_of("an incident", *EVERY_TOOL), {**fine, **found})["required_tools"]
    assert (everything.passed, everything.reason) == (True, "every required tool ran and succeeded")
    nothing = check_gate(state_of("an invoice"))["required_tools"]
    assert nothing.failures == ("never ran: extract_entities, summarize",)
    failing = check_gate(
        state_of("an invoice", *tool_events("s1", "extract_entities"), *broken), {"extract_entities": entities()}
    )
    assert failing["required_tools"].failures == ("summarize failed: boom",)
    refused = (*tool_events("s2", "summarize")[:-1], judged("s2", Outcome.REPLAN))
    doubted = check_gate(
        state_of("an invoice", *tool_events("s1", "extract_entities"), *refused), {"extract_entities": {}}
    )
    assert doubted["required_tools"].failures == ("summarize failed: its result was not accepted (because)",)
    half = check_gate(
        state_of("an incident", *tool_events("s1", "extract_entities"), *tool_events("s2", "summarize")), fine
    )
    assert half["required_tools"].failures == ("never ran: search_incident_knowledge, search_previous_issues",)


def test_a_room_that_lists_the_gate_has_its_citations_checked() -> None:
    assert not check_gate(state_of("an invoice"), {}, "so it is [2]", (source(1),))["citations_resolve"].passed
    assert check_gate(state_of("an invoice"), {}, "so it is [1]", (source(1),))["citations_resolve"].passed


def test_numbers_in_brackets_that_the_user_wrote_are_no_citations() -> None:
    assert check_gate(state_of("log: [12] failed"), {}, "It says [12] failed")["citations_resolve"].passed


def test_only_listed_gates_fail_a_run_and_background_prompts_have_none() -> None:
    events = (GateChecked(gate="answer_present", passed=False, reason="no answer"),
              GateChecked(gate="required_tools", passed=False, reason="never ran"))  # fmt: skip
    state = fold(RUN_ID, log(created(room=ROOM), STEPS, *events))
    assert [gate.gate for gate in list_failed_gates(state)] == ["required_tools"]
    hidden = fold(RUN_ID, log(created(room=ROOM).model_copy(update={"hidden": True}), STEPS, *events))
    assert list_failed_gates(hidden) == ()
    assert has_room_gates(state)
    assert not has_room_gates(hidden)
    assert not has_room_gates(fold(RUN_ID, log(created(), STEPS)))


def test_a_gate_that_is_not_there_never_passes() -> None:
    misspelt = Room(id="r", gates=("required_tool",))
    assert not check_gate(state_of(room=misspelt))["required_tool"].passed
    assert set(ROOM.gates) <= {*GATES, *EXTENSIONS.gates}
