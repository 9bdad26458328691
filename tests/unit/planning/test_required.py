"""The tools a room requires are in every plan, however the plan came about, with arguments that fit."""

from dataclasses import replace
from typing import Any, cast

import pytest
from pydantic import BaseModel

from agent.core.events import StepOutput
from agent.core.models import JsonObject, Plan, PlanStep, Room
from agent.core.plan_references import resolve_references
from agent.planning.planner import build_plan
from agent.planning.request import AnswerRules, CompletedStep, EarlierPlans, PlanningRequest
from agent.planning.required import add_required_tools, extract_context, split_context
from agent.planning.rules import RulePlanner
from agent.tools import READ_ONLY, ToolSpec, TypedTool, build_flat_schema
from agent.tools.catalogue import Catalogue
from gateway.features.incident.tools.brief import BuildIncidentBriefTool
from gateway.features.incident.tools.entities import ExtractEntitiesTool
from gateway.features.incident.tools.issues import SearchPreviousIssuesTool
from gateway.features.incident.tools.knowledge import SearchIncidentKnowledgeTool
from gateway.features.incident.tools.priority import ClassifyPriorityTool
from gateway.features.incident.tools.summary import SummarizeTool
from gateway.features.incident.tools.topic import TOPIC, is_incident
from tests.unit.planning.kitchen import wire_plan, wire_step

CORE = ("extract_entities", "classify_priority", "summarize")
INCIDENT = ("search_incident_knowledge", "search_previous_issues", "build_incident_brief")
ROOM = Room(id="incident", citations=True, required_tools=CORE, incident_tools=INCIDENT)
PROMPT = "P1 incident: profile picture errors cause latency in profile-media-api. Costs $5, see ${HOME} and $s1."
PLAIN = "Summarise what the customer said about the new invoices."
CONTEXT = {"service": "profile-media-api", "priority": "Major", "severity": "SEV2", "status": "Open"}

TOOLS: tuple[type[TypedTool[Any, Any]], ...] = (
    ExtractEntitiesTool,
    ClassifyPriorityTool,
    SummarizeTool,
    SearchIncidentKnowledgeTool,
    SearchPreviousIssuesTool,
    BuildIncidentBriefTool,
)
CATALOGUE = Catalogue(
    tools=tuple(
        ToolSpec(
            tool.name,
            f"The tool {tool.name}.",
            build_flat_schema(cast("type[BaseModel]", tool.Input)),
            None,
            READ_ONLY,
            tainted=False,
            hints=tool.hints,
        )
        for tool in sorted(TOOLS, key=lambda tool: tool.name)
    )
)


def asking(prompt: str = PROMPT, **fields: Any) -> PlanningRequest:
    answer = AnswerRules(needs_completion=True)
    known = {"room": ROOM, "catalogue": CATALOGUE, "original": prompt, "context": CONTEXT, "answer": answer}
    request = PlanningRequest(question=prompt, **{**known, **fields})
    topics = {TOPIC} if is_incident(f"{request.original}\n{request.question}", request.context) else set()
    return replace(request, topics=frozenset(topics))


def required(plan: Plan, request: PlanningRequest) -> Plan:
    return add_required_tools(plan, request, has_model=False).plan


def ruled(request: PlanningRequest) -> Plan:
    return required(RulePlanner().plan(request), request)


def tools(plan: Plan) -> list[str]:
    return [step.tool for step in plan.steps]


def step_of(plan: Plan, tool: str) -> PlanStep:
    return next(step for step in reversed(plan.steps) if step.tool == tool)


def no_result(step_id: str) -> StepOutput:
    raise KeyError(step_id)


def find_args(plan: Plan, tool: str) -> JsonObject:
    """The arguments the tool will get."""
    return resolve_references(dict(step_of(plan, tool).args), no_result).args


def from_model(*steps: JsonObject, request: PlanningRequest | None = None) -> tuple[Plan, list[str]]:
    asked, notes = request or asking(), list[str]()
    plan = build_plan(wire_plan(*steps), asked, notes=notes)
    adjusted = add_required_tools(plan, asked, has_model=True)
    ids = [step.id for step in adjusted.plan.steps]
    assert len(set(ids)) == len(ids), "no two steps have one name"
    return adjusted.plan, [*notes, *adjusted.notes]


@pytest.mark.row("S004-25")
def test_without_a_model_the_core_tools_are_always_planned() -> None:
    plan = ruled(asking(PLAIN, context={}))
    assert tools(plan) == ["extract_entities", "classify_priority", "summarize", "completion"]
    assert find_args(plan, "summarize") == {"text": PLAIN}


@pytest.mark.row("S004-25")
def test_an_incident_is_searched_for_and_briefed() -> None:
    plan = ruled(asking())
    assert tools(plan) == [
        "extract_entities", "classify_priority", "search_incident_knowledge", "search_previous_issues",
        "build_incident_brief", "summarize", "completion",
    ]  # fmt: skip
    searches = {step.id for step in plan.steps if step.tool.startswith("search_")}
    assert set(step_of(plan, "build_incident_brief").depends_on) == searches
    assert set(plan.steps[-1].depends_on) == {step.id for step in plan.steps[:-1]}
    assert find_args(plan, "search_previous_issues") == {
        "query": PROMPT,
        "service": "profile-media-api",
        "severity": "SEV2",
    }
    assert find_args(plan, "classify_priority") == {"text": PROMPT, "priority": "Major", "severity": "SEV2"}


def test_what_a_user_wrote_is_never_taken_for_a_reference() -> None:
    plan = ruled(asking())
    assert find_args(plan, "extract_entities") == {"text": PROMPT}
    assert not step_of(plan, "extract_entities").depends_on


@pytest.mark.parametrize(
    ("text", "context", "incident"),
    [
        ("an Incident was opened", {}, True),
        ("two outages today", {}, True),
        ("high latency in checkout", {}, True),
        ("lots of errors", {}, True),
        ("SEV2 on payments", {}, True),
        ("a sev-1", {}, True),
        ("severe degradation", {}, True),
        ("TimeoutError in the checkout", {}, True),
        ("the error_rate of checkout-api is at 12 %", {}, True),
        ("HttpErrorsTotal doubled", {}, True),
        ("p95_latency_ms is 4000", {}, True),
        ("ERROR500 for everybody", {}, True),
        ("logins keep erroring out", {}, True),
        ("SEV10", {}, True),
        ("OUTAGES", {}, True),
        ("checkout-api is down since nine", {}, True),
        ("P1: nobody can sign in", {}, True),
        ("payments are failing for everybody", {}, True),
        ("pay-01.eu.example.com is unavailable", {}, True),
        ("urgent: send the invoices to Anna", {}, False),
        ("write down what we said about security", {}, False),
        ("several customers like it", {}, False),
        ("Several of them, erroneously", {}, False),
        ("SEVEN TERRORS, MIRRORERRORING", {}, False),
        ("seven sevens", {}, False),
        ("terror, mirrored, coincidental", {}, False),
        ("summarize this", {}, False),
        ("", {}, False),
        ("summarize this", {"priority": "P1"}, True),
        ("summarize this", {"severity": "p2"}, True),
        ("summarize this", {"severity": "SEV3"}, True),
        ("summarize this", {"priority": "Major"}, False),
        ("summarize this", {"status": "P1"}, False),
    ],
)
def test_what_speaks_of_an_incident(text: str, context: dict[str, str], incident: bool) -> None:
    assert is_incident(text, context) is incident


@pytest.mark.row("S004-26")
def test_a_sparse_and_noisy_plan_is_made_whole() -> None:
    plan, notes = from_model(
        wire_step("s1", "build_incident_brief"),
        wire_step("s2", "search_previous_issues", "s1", limit="5", colour="red", severity=""),
        wire_step("s3", "summarize", "s2", text="$s2", max_words="40"),
    )
    assert tools(plan) == [
        "search_previous_issues", "extract_entities", "classify_priority", "search_incident_knowledge",
        "build_incident_brief", "summarize", "completion",
    ]  # fmt: skip
    assert find_args(plan, "search_previous_issues") == {
        "query": PROMPT, "limit": 5, "service": "profile-media-api", "severity": "SEV2",
    }  # fmt: skip
    assert find_args(plan, "summarize") == {"text": PROMPT, "max_words": 40}
    assert step_of(plan, "summarize").depends_on == ()
    searches = {step.id for step in plan.steps if step.tool.startswith("search_")}
    assert searches <= set(step_of(plan, "build_incident_brief").depends_on)
    assert any("dropped 'colour'" in note for note in notes), "what was dropped is told"
    assert any("search_incident_knowledge is required here and was added" in note for note in notes)


def test_arguments_that_do_not_fit_give_way_to_the_defaults() -> None:
    plan, notes = from_model(wire_step("s1", "summarize", max_words="99999", text="other"))
    assert find_args(plan, "summarize") == {"text": PROMPT}
    assert any("dropped 'max_words'" in note for note in notes)


def test_a_plan_without_any_of_them_gets_them_all() -> None:
    plan, _ = from_model(wire_step("s2", "completion"))
    assert set(tools(plan)) == {*CORE, *INCIDENT, "completion"}
    assert plan.steps[-1].is_completion


def test_only_the_last_summary_is_of_the_original() -> None:
    plan, _ = from_model(
        wire_step("s1", "search_previous_issues"),
        wire_step("s2", "summarize", "s1", text="$s1"),
        wire_step("s3", "summarize", "s2", text="$s2"),
    )
    first, last = (step for step in plan.steps if step.tool == "summarize")
    assert first.args["text"] == "$s1"
    assert resolve_references(dict(last.args), no_result).args["text"] == PROMPT


def test_a_tool_that_is_not_there_is_left_to_the_gate() -> None:
    narrow = Catalogue(tools=tuple(spec for spec in CATALOGUE.tools if spec.name in CORE))
    plan = ruled(asking(catalogue=narrow))
    assert set(tools(plan)) == {*CORE, "completion"}


@pytest.mark.row("S004-36")
def test_a_new_plan_keeps_what_succeeded_and_searches_more_broadly() -> None:
    before = ruled(asking())
    redone = {"search_previous_issues", "build_incident_brief", "completion"}
    kept = {step.id: CompletedStep(step, "found") for step in before.steps if step.tool not in redone}
    earlier = EarlierPlans(
        completed=kept,
        last=before,
        used_ids=frozenset(step.id for step in before.steps),
        redo=frozenset({"search_previous_issues"}),
        replan_reason="incident_evidence: search_previous_issues found nothing",
    )
    plan = ruled(asking(earlier_plans=earlier))
    new = [step for step in plan.steps if step.id not in {step.id for step in before.steps}]
    assert [step.tool for step in new] == ["search_previous_issues", "build_incident_brief", "completion"]
    assert {step.id for step in plan.steps} > kept.keys()
    assert find_args(plan, "search_previous_issues") == {"query": PROMPT, "limit": 10}, (
        "no filters, as many as there may be"
    )
    assert plan.version == 1


def test_a_long_text_is_cut_to_what_a_tool_takes() -> None:
    long = "incident " + "x" * 150_000
    plan = ruled(asking(long))
    assert len(str(find_args(plan, "search_previous_issues")["query"])) <= 100_000
    assert find_args(plan, "summarize")["text"] == long


@pytest.mark.row("S004-02")
def test_the_context_is_trimmed_and_the_rest_dropped() -> None:
    given: JsonObject = {"service": "  api ", "priority": 1, "severity": "", "team": "x", "status": ["a"]}
    assert split_context(given) == ({"service": "api", "priority": "1"}, ["team", "status"])
    assert extract_context({"context": given}) == {"service": "api", "priority": "1"}
    assert extract_context({"context": "P1"}) == {}
    assert extract_context({}) == {}
