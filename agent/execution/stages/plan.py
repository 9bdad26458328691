"""Plan: a plan for the request, or the next one after a REPLAN. Cheap routes get theirs without the planner."""

from time import monotonic

from agent.core.events import Draft, PlanProposed, PlanRejected
from agent.core.llm.port import ModelReply, ResponseSchema
from agent.core.models import JsonObject, Plan, PlanStep
from agent.execution.catalogue import catalogue_of, worst_effect
from agent.execution.decide import replan_reason
from agent.execution.metering import MeteredModels
from agent.execution.outputs import cap, load
from agent.execution.run import Run
from agent.execution.skill_executor import scoped_tools
from agent.execution.stages.guard import explicit_tool_calls
from agent.planning.planner import Planned, PlannerAgent
from agent.planning.request import CompletedStep, PlanningRequest
from agent.planning.rules import RulePlanner
from agent.planning.wire import action_of

KNOWLEDGE_TOOL = "search_knowledge"
NO_MODEL = "no model is configured; set AGENT_LLM_BASE_URL and AGENT_MODEL_FAST"


async def plan(run: Run) -> None:
    """Propose a plan and record it, with every reply that was refused on the way."""
    started = monotonic()
    reason = replan_reason(run.state) if run.state.plan is not None else None
    planned = await _replanned(run, reason) if reason is not None else await _first(run)
    rejected = [Draft(PlanRejected(problems=tuple(r.problems), excerpt=r.excerpt)) for r in planned.rejected]
    proposed = PlanProposed(
        plan=_annotated(run, planned.plan),
        requested=planned.requested,
        effective=planned.effective,
        fallback_reason=planned.fallback_reason,
        replan_reason=reason,
        final=not run.has_model or _is_fixed(run),
        duration=monotonic() - started,
    )
    await run.emit(*rejected, Draft(proposed))


def _annotated(run: Run, proposed: Plan) -> Plan:
    """The plan with the model its completion will be sent to, where the plan asks for a tier."""
    if not run.has_model or not any(step.is_completion and step.tier for step in proposed.steps):
        return proposed
    steps = tuple(
        step.model_copy(update={"provider": run.engine.models.name(step.tier, run.room)})
        if step.is_completion and step.tier
        else step
        for step in proposed.steps
    )
    return proposed.model_copy(update={"steps": steps})


def _is_fixed(run: Run) -> bool:
    """Whether the route leaves nothing to plan: there is no other way to ask a plain question or to obey a command."""
    route = run.state.understood.route if run.state.understood else "plan"
    return route not in ("plan", "skill")


async def _first(run: Run) -> Planned:
    """The first plan, by the route the request was given."""
    understood = run.state.understood
    route = understood.route if understood else "plan"
    why = understood.reason if understood else ""
    if route == "tool_calls":
        return _by_rule(_explicit(run, why))
    if route == "skill" and understood is not None and understood.skill is not None:
        return _by_rule(_one_skill(run, understood.skill, understood.question, why))
    if run.room.knowledge and route in ("plan", "direct") and KNOWLEDGE_TOOL in run.engine.registry:
        return _by_rule(_looked_up(run))
    if route in ("task", "greeting", "direct"):
        return _by_rule(_one_completion(run, why))
    request = await _planning_request(run, None)
    if route == "command":
        return _by_rule(RulePlanner().plan(request).model_copy(update={"origin_reason": why}))
    return await _planned(run, request)


async def _replanned(run: Run, reason: str) -> Planned:
    return await _planned(run, await _planning_request(run, reason))


async def _planned(run: Run, request: PlanningRequest) -> Planned:
    if not run.has_model:
        ruled = RulePlanner().plan(request).model_copy(update={"origin_reason": NO_MODEL})
        return Planned(plan=ruled, requested="llm", effective="rules", fallback_reason=NO_MODEL, rejected=())
    return await PlannerAgent(_FastTier(run)).plan(request)


class _FastTier:
    """The planner's way to the fast tier; it never carries tools."""

    def __init__(self, run: Run) -> None:
        self._models = MeteredModels(run)

    async def ask(self, messages: tuple[JsonObject, ...], schema: ResponseSchema) -> ModelReply:
        return await self._models.complete("planner", messages, schema=schema)


async def _planning_request(run: Run, reason: str | None) -> PlanningRequest:
    state, room = run.state, run.room
    completed = []
    for step in state.succeeded_steps():
        output = state.step(step.id).output
        if output is not None and not step.is_completion:
            loaded = await load(run, output)
            completed.append(CompletedStep(step=step, text=loaded.text, tainted=loaded.tainted))
    retrieved = state.retrieved
    return PlanningRequest(
        question=state.understood.question if state.understood else state.prompt,
        room=room,
        catalogue=catalogue_of(run),
        history=retrieved.history if retrieved else (),
        # What came from outside must not have a say in what is done; the answer may still quote it, as data.
        memories=tuple(item for item in retrieved.items if not item.tainted) if retrieved else (),
        completed=tuple(completed),
        replan_reason=reason,
        previous=state.plan,
        used_ids=frozenset(step.id for proposed in state.plans for step in proposed.plan.steps),
        failed=tuple(s for s in (state.plan.steps if state.plan else ()) if state.step(s.id).status != "succeeded"),
        tainted=state.tainted,
        needs_completion=bool(room.persona) or room.citations,
    )


def _by_rule(ruled: Plan) -> Planned:
    """A plan that no planner was asked for: nothing was requested that fell back."""
    return Planned(plan=ruled, requested="rules", effective="rules", fallback_reason=None, rejected=())


def _one_completion(run: Run, why: str) -> Plan:
    step = PlanStep(id="answer", executor="litellm", action="completion", tool="completion", intent="answer the user")
    return Plan(goal=_goal(run), steps=(step,), origin="rules", origin_reason=why)


def _looked_up(run: Run) -> Plan:
    """The plan of every question in a room of knowledge: look it up, answer from what was found."""
    search = PlanStep(
        id="s1",
        executor="agent",
        action="tool",
        tool=KNOWLEDGE_TOOL,
        args={"query": cap(run.state.question, 4_000)},
        intent="find what the documents say",
    )
    return Plan(
        goal=_goal(run), steps=_with_answer(run, (search,)), origin="rules", origin_reason="a room of knowledge"
    )


def _one_skill(run: Run, name: str, task: str, why: str) -> Plan:
    skill = run.engine.skills.get(name)
    step = PlanStep(
        id="s1",
        executor="skill",
        action="skill",
        tool=skill.name,
        args={"task": task},
        intent=cap(task, 200) or skill.description[:200],
        effect=worst_effect(tool.spec.effect for tool in scoped_tools(run, skill).values()),
    )
    return Plan(goal=_goal(run), steps=_with_answer(run, (step,)), origin="request", origin_reason=why)


def _explicit(run: Run, why: str) -> Plan:
    steps = tuple(
        PlanStep(
            id=f"s{number}",
            executor="agent",
            action=action_of(call.tool),
            tool=call.tool,
            args=call.args,
            intent=f"call {call.tool} as the request asks",
            effect=run.engine.registry.get(call.tool).spec.effect,
        )
        for number, call in enumerate(explicit_tool_calls(run.state.request), start=1)
    )
    answered = bool(run.state.prompt.strip())
    return Plan(
        goal=_goal(run),
        steps=_with_answer(run, steps, always=answered and run.has_model),
        origin="request",
        origin_reason=why,
    )


def _with_answer(run: Run, steps: tuple[PlanStep, ...], *, always: bool = False) -> tuple[PlanStep, ...]:
    """The steps, and a completion where several results, a persona or citations call for one."""
    if not (always or len(steps) > 1 or run.room.persona or run.room.citations):
        return steps
    answer = PlanStep(
        id="answer",
        executor="litellm",
        action="completion",
        tool="completion",
        depends_on=tuple(step.id for step in steps),
        intent="answer the user from the results",
    )
    return (*steps, answer)


def _goal(run: Run) -> str:
    return cap(run.state.question, 300) or "carry out the requested tool calls"
