"""Plans without a planner call, for requests whose route or room determines the plan."""

from collections.abc import Collection

from agent.core.models import JsonObject, Plan, PlanStep, ToolCallRequest
from agent.core.models.request import read_explicit_tool_calls
from agent.core.plan_references import find_references, quote_literal, quote_texts
from agent.planning.reply_schema import describe_requested_call
from agent.planning.validate import build_completion
from agent.run_context.outputs import HISTORY_INPUT, cut_text
from agent.run_context.run import Run
from agent.skills import Skill
from agent.tools.catalogue import find_worst_effect

HISTORY_MESSAGES, HISTORY_CHARS = 8, 400
"""Messages, and characters of each, that a room's skill receives. Its briefing supplies the rest."""


def plan_completion_only(run: Run, why: str) -> Plan:
    """A plan with a completion only."""
    return Plan(goal=make_goal(run), steps=(build_completion(),), origin="rules", origin_reason=why)


def _plan_room_skill(run: Run, skill: Skill, task: str, why: str) -> Plan:
    """The plan of a request in a room with its own skill: the briefing tool, then the skill.

    The skill receives the briefing and the newest messages, and writes the answer."""
    before: tuple[PlanStep, ...] = ()
    given_args: JsonObject = {}
    if skill.briefing is not None:
        before = (PlanStep(id="s1", executor="agent", action="tool", tool=skill.briefing, intent="see what is known"),)
        given_args["state"] = {"$from": "s1"}
    history = run.state.retrieval.history if run.state.retrieval is not None else ()
    lines = [
        f"{one.role}: {cut_text(one.content, HISTORY_CHARS)}" for one in history[-HISTORY_MESSAGES:] if one.content
    ]
    if lines:
        given_args[HISTORY_INPUT] = quote_literal("\n".join(lines))
    tools = skill.select_tools(run.allowed_tools)
    last = PlanStep(
        id=f"s{len(before) + 1}",
        executor="skill",
        action="skill",
        tool=skill.name,
        args={"task": quote_literal(task), **given_args},
        depends_on=tuple(step.id for step in before),
        intent=cut_text(task, 200),
        effect=find_worst_effect(run.engine.registry.get(name).spec.effect for name in tools),
        tools=skill.allowed_tools,
    )
    return Plan(goal=make_goal(run), steps=(*before, last), origin="rules", origin_reason=why)


def plan_skill(run: Run, name: str, task: str, why: str) -> Plan:
    """The plan of a request that calls a skill by name, or of a room with its own skill."""
    skill = run.engine.skills.get(name)
    if skill.name == run.room.skill:
        return _plan_room_skill(run, skill, task, why)
    # The user chose the skill, so it gets the tools that its author lists. What it reads chooses none.
    tools = skill.select_tools(run.allowed_tools)
    step = PlanStep(
        id="s1",
        executor="skill",
        action="skill",
        tool=skill.name,
        args={"task": task},
        intent=cut_text(task, 200) or skill.description[:200],
        effect=find_worst_effect(run.engine.registry.get(name).spec.effect for name in tools),
        tools=skill.allowed_tools,
    )
    return Plan(goal=make_goal(run), steps=append_completion(run, (step,)), origin="request", origin_reason=why)


def plan_explicit_calls(run: Run, why: str) -> Plan:
    """The plan of a request that names its tool calls. A call waits for those whose results it refers to."""
    calls = read_explicit_tool_calls(run.state.request)
    ids = [f"s{number}" for number in range(1, len(calls) + 1)]
    registry = run.engine.registry
    tools = [registry.resolve_in_room(run.room, call.tool) for call in calls]
    steps = tuple(
        PlanStep(
            id=ids[place],
            executor="agent",
            action=registry.get(tools[place]).spec.step_action,
            tool=tools[place],
            args=quote_call_args(call, ids[:place]),
            depends_on=tuple(name for name in ids[:place] if name in find_references(call.args)),
            intent=call.intent or describe_requested_call(call.tool),
            effect=registry.get(tools[place]).spec.effect,
        )
        for place, call in enumerate(calls)
    )
    answered = bool(run.state.prompt.strip())
    return Plan(
        goal=make_goal(run),
        steps=append_completion(run, steps, always=answered and run.works_with_model),
        origin="request",
        origin_reason=why,
    )


def quote_call_args(call: ToolCallRequest, earlier: Collection[str]) -> JsonObject:
    """The arguments of a requested call, in which only the results of `earlier` calls are referred to."""
    return {name: quote_texts(value, earlier) for name, value in call.args.items()}


def append_completion(run: Run, steps: tuple[PlanStep, ...], *, always: bool = False) -> tuple[PlanStep, ...]:
    """The steps, with a completion if several results, a persona or citations need one."""
    if not (always or len(steps) > 1 or run.room.persona or run.room.citations):
        return steps
    return append_answer(steps)


def append_answer(
    steps: tuple[PlanStep, ...], *, also: tuple[str, ...] = (), taken: frozenset[str] = frozenset()
) -> tuple[PlanStep, ...]:
    """The steps and a completion that uses them, and the results of the steps `also`."""
    return (*steps, build_completion((*also, *(step.id for step in steps)), taken))


def make_goal(run: Run) -> str:
    """The goal of a plan by rules."""
    return cut_text(run.state.question, 300) or "carry out the requested tool calls"
