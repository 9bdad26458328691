"""The router of a room with `routing: intents`: one model call that reads what a message asks for, and the plan that
hands each request to its sub-agent.

A router that cannot be used raises; the planner then takes over with the room's tools.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError

from agent.core.errors import PlanInvalidError
from agent.core.models import IntentCategory, JsonObject, Plan, PlanStep, TaskPlan, TaskStep, UserIntent
from agent.core.plan_references import quote_literal
from agent.core.value_faults import describe_first_fault
from agent.llm.port import ModelReply
from agent.llm.prompts import format_block
from agent.planning.prompt import QUESTION_CHARS, RESULT_CHARS, format_history
from agent.planning.request import PlanningRequest
from agent.run_context.outputs import cut_text
from agent.tools.catalogue import Catalogue, format_tool
from gateway.features.studio.engine.commands_by_word import FORMS, read_command
from gateway.features.studio.engine.prompts import render
from gateway.features.studio.engine.router_reply import MAX_INTENTS, IntentReply, RouterReply, read_reply
from gateway.features.studio.engine.subagents import StudioAgent, make_studio_agents, names_change
from gateway.features.studio.engine.unsaid_values import find_missing, find_unsaid

CONFIDENCE = 0.8
"""The router dispatches above this; otherwise the user is asked."""
BY_COMMAND = "the message is an exact command, read by rules"
NOTHING_TO_DO = "the message asks for nothing that the router knows"


@dataclass(frozen=True, slots=True)
class Dispatch:
    """What the router decided: a plan and its tasks, or a question to the user; with the reason for the latter."""

    intents: tuple[UserIntent, ...]
    tasks: TaskPlan | None = None
    plan: Plan | None = None
    question: str = ""
    reason: str = ""
    changing: tuple[int, ...] = ()
    """The intents that may change something: their action is not a tool that only reads."""


def build_router_messages(request: PlanningRequest) -> tuple[JsonObject, ...]:
    """The messages of the router's call: trusted text first, everything else in data blocks."""
    kinds = make_studio_agents(request.catalogue.list_names())
    operator = "\n\n".join(part for part in (request.room.system_prompt, request.answer.instructions) if part)
    system = render(
        "router",
        system=f"{operator}\n\n" if operator else "",
        categories="\n".join(_describe_category(kind, request.catalogue) for kind in kinds),
        example=_encode_example(kinds, request.catalogue),
        max_intents=str(MAX_INTENTS),
    )
    parts = []
    if lines := format_history(request):
        parts.append(format_block("history", "\n".join(lines)))
    if request.earlier_results:
        earlier = [f"{one.tool}: {cut_text(one.text, RESULT_CHARS)}" for one in request.earlier_results]
        parts.append(format_block("earlier_results", "\n".join(earlier)))
    parts.append(format_block("user_request", cut_text(request.original or request.question, QUESTION_CHARS)))
    if request.earlier_plans.replan_reason:
        parts.append(format_block("replan", request.earlier_plans.replan_reason))
    parts.append("Reply with one JSON object.")
    return ({"role": "system", "content": system}, {"role": "user", "content": "\n".join(parts)})


def _encode_example(kinds: Sequence[type[StudioAgent]], catalogue: Catalogue) -> str:
    """A reply with real names, as a small model copies them: the first category's first tool without inputs,
    else its first tool."""
    kind = kinds[0] if kinds else None
    specs = [spec for name in (kind.BORROWS if kind else ()) if (spec := catalogue.get_tool(name)) is not None]
    bare = [spec for spec in specs if not spec.input_schema.get("required")]
    named = next(iter(bare or specs), None)
    intent: JsonObject = {
        "category": kind.CATEGORY if kind else "query",
        "action": named.name if named is not None else "list",
        "entities": [],
        "request": named.description if named is not None else "list what there is",
        "depends_on": [],
        "confidence": 0.95,
    }
    example = {"reasoning": "One request.", "goal": intent["request"], "intents": [intent], "question": ""}
    return json.dumps(example, ensure_ascii=False)


def read_dispatch(reply: ModelReply, request: PlanningRequest) -> Dispatch:
    """Decides what follows from the router's reply. Raises `PlanInvalidError` if the planner has to take over."""
    read = read_reply(reply.text, reply.finish_reason)
    agents = {kind.CATEGORY: kind for kind in make_studio_agents(request.catalogue.list_names())}
    read = read.model_copy(update={"intents": tuple([_correct_category(one, agents) for one in read.intents])})
    intents = read.to_intents()
    question = read.question.strip()
    unsure = [one for one in intents if one.confidence <= CONFIDENCE]
    if question and request.may_ask:
        return Dispatch(intents, question=question, reason="the router asks for what is missing")
    if unsure or not intents:
        if (command := dispatch_command(request)) is not None:
            return command
        lowest = min((one.confidence for one in unsure), default=0.0)
        reason = f"the router is not sure (confidence {lowest:g}, more than {CONFIDENCE:g} is needed)"
        if not request.may_ask or not intents:
            raise PlanInvalidError([reason if intents else NOTHING_TO_DO])
        return Dispatch(intents, question=_ask_for_category(intents, request.catalogue), reason=reason)
    if missing := [one.category for one in intents if one.category not in agents]:
        raise PlanInvalidError([f"no sub-agent of this room handles {missing[0]}"])
    if (doubt := _find_doubt(read, request, agents)) is not None:
        if not request.may_ask:
            raise PlanInvalidError([doubt.reason])
        return doubt
    try:
        tasks = _build_tasks(read, request, agents)
    except ValidationError as error:
        raise PlanInvalidError([describe_first_fault(error)]) from error
    changing = tuple(at for at, one in enumerate(intents) if _may_change(one, agents[one.category], request.catalogue))
    return Dispatch(intents, tasks, _build_plan(tasks, read, request), changing=changing)


def dispatch_command(request: PlanningRequest) -> Dispatch | None:
    """What an exact command of the closed set asks for, read by rules; None for free text, or for a command of a
    sub-agent or a tool that the room does not have."""
    command = read_command(request.original or request.question)
    agents = {kind.CATEGORY: kind for kind in make_studio_agents(request.catalogue.list_names())}
    if command is None or command.category not in agents or request.catalogue.get_tool(command.tool) is None:
        return None
    intent = IntentReply(category=command.category, action=command.tool, entities=command.inputs, confidence=1.0)
    read = RouterReply(intents=(intent,))
    tasks = _build_tasks(read, request, agents)
    changing = (0,) if _may_change(intent, agents[intent.category], request.catalogue) else ()
    plan = _build_plan(tasks, read, request).model_copy(update={"origin": "rules", "origin_reason": BY_COMMAND})
    return Dispatch(read.to_intents(), tasks, plan, changing=changing, reason=BY_COMMAND)


def _correct_category(intent: IntentReply, agents: Mapping[IntentCategory, type[StudioAgent]]) -> IntentReply:
    """The intent in the category of its action, where the action is a tool of one other category only: the router has
    misread the category, whose sub-agent could not make the call."""
    having = [kind.CATEGORY for kind in agents.values() if intent.action in kind.BORROWS]
    if len(having) != 1 or intent.category in having:
        return intent
    return intent.model_copy(update={"category": having[0]})


def _find_doubt(
    read: RouterReply, request: PlanningRequest, agents: Mapping[IntentCategory, type[StudioAgent]]
) -> Dispatch | None:
    """The question about an intent that cannot be as the router read it: a change of a category that only reads, whose
    sub-agent could only claim it; or, of a small model, a value that the user has not said."""
    names = sorted({name for kind in agents.values() for name in kind.BORROWS})
    specs = [spec for name in names if (spec := request.catalogue.get_tool(name)) is not None]
    for intent in read.intents:
        if not agents[intent.category].CHANGES_THINGS and names_change(intent.action, specs):
            reason = f"{intent.action!r} changes something, which the category {intent.category} does not"
            return Dispatch(read.to_intents(), question=_ask_for_category((), request.catalogue), reason=reason)
    if not request.checks_answers:
        return None
    for intent in read.intents:
        own = [spec for spec in specs if spec.name in agents[intent.category].BORROWS]
        before = [read.intents[at] for at in intent.depends_on if at < len(read.intents)]
        follows = any(agents[one.category].CHANGES_THINGS for one in before)
        if (missing := find_missing(intent.action, intent.entities, request.catalogue)) is not None and not before:
            question, reason = "I did not find it in your message.", f"the router read no {missing!r}"
        elif (missing := find_unsaid(intent.action, intent.entities, own, request, follows_change=follows)) is not None:
            question, reason = "Your message does not say it.", f"the message does not say {missing!r}"
        else:
            continue
        text = f"What is the {missing.replace('_', ' ')} for {intent.action.replace('_', ' ')}? {question}"
        return Dispatch(read.to_intents(), question=text, reason=reason)
    return None


def _may_change(intent: UserIntent, agent: type[StudioAgent], catalogue: Catalogue) -> bool:
    spec = catalogue.get_tool(intent.action)
    return agent.CHANGES_THINGS and (spec is None or spec.has_side_effect)


def describe_doors(tools: Sequence[str]) -> str:
    """Names where people do without a model what the sub-agents of a room with these tools do."""
    lines = [f"- {kind.HANDLES.partition(':')[0]}: {kind.DOORS}" for kind in make_studio_agents(tools)]
    if not lines:
        return ""
    forms = ", ".join(f"`{form}`" for form in FORMS)
    return "\n".join([*lines, "", f"These commands work here without a model, written exactly so: {forms}."])


def _describe_category(kind: type[StudioAgent], catalogue: Catalogue) -> str:
    specs = [spec for name in kind.BORROWS if (spec := catalogue.get_tool(name)) is not None]
    return "\n".join([f"{kind.CATEGORY}: {kind.HANDLES}", *map(format_tool, specs)])


def _ask_for_category(intents: Sequence[UserIntent], catalogue: Catalogue) -> str:
    """The question of a router that is not sure: its guess, and what else there is."""
    kinds = make_studio_agents(catalogue.list_names())
    guessed = dict.fromkeys(one.category for one in intents)
    likely = [kind for kind in kinds if kind.CATEGORY in guessed]
    others = [kind for kind in kinds if kind.CATEGORY not in guessed]
    lines = ["I am not sure what you want. Is it about one of these?", ""]
    lines += [f"- {kind.HANDLES}" for kind in (*likely, *others)]
    return "\n".join([*lines, "", "Say in one sentence what should be done, and with which room, tool or prompt."])


def _build_tasks(
    read: RouterReply, request: PlanningRequest, agents: Mapping[IntentCategory, type[StudioAgent]]
) -> TaskPlan:
    steps = tuple(
        TaskStep(
            action=one.action,
            target=agents[one.category].AGENT_ID,
            parameters={**one.entities},
            depends_on=one.depends_on,
        )
        for one in read.intents
    )
    named = [step.action for step in steps if request.catalogue.get_tool(step.action) is not None]
    spawned = [f"spawn_{step.target}" for step in steps]
    goal = read.goal.strip() or request.question
    return TaskPlan(goal=goal[:300], steps=steps, estimated_tools=tuple(dict.fromkeys((*spawned, *named))))


def _build_plan(tasks: TaskPlan, read: RouterReply, request: PlanningRequest) -> Plan:
    """The engine's plan: one step for each task, which starts its sub-agent."""
    whole = request.original or request.question
    steps = []
    offset = len(request.earlier_plans.used_ids)  # no id is used twice in a run
    for number, (task, intent) in enumerate(zip(tasks.steps, read.intents, strict=True), start=offset + 1):
        # A single request keeps the user's own words; the router's are only needed to part several.
        request_text = whole if len(tasks.steps) == 1 else intent.request.strip() or whole
        before = tuple(f"s{offset + other + 1}" for other in task.depends_on)
        results: list[JsonValue] = [{"$from": one, "path": "output.summary"} for one in before]
        entities: JsonObject = {name: quote_literal(value) for name, value in intent.entities.items()}
        steps.append(
            PlanStep(
                id=f"s{number}",
                executor="agent",
                action="tool",
                tool=f"spawn_{task.target}",
                args={
                    "request": quote_literal(cut_text(request_text, QUESTION_CHARS)),
                    "action": quote_literal(task.action),
                    "entities": entities,
                    "before": results,
                },
                depends_on=before,
                intent=cut_text(" ".join(request_text.split()), 200),
            )
        )
    why = "dispatched by the room's router"
    return Plan(
        goal=tasks.goal, steps=tuple(steps), origin="llm", origin_reason=why, version=request.earlier_plans.next_version
    )
