"""Plan: a plan for the request, or the next one after a REPLAN. Cheap routes get theirs without the planner."""

from collections.abc import Sequence
from dataclasses import replace
from time import monotonic

from agent.core.errors import ModelRequestError
from agent.core.events import (
    AnswerStarted,
    EventBody,
    EventDraft,
    InputRequested,
    ModelReturned,
    PlanProposed,
    PlanRejected,
    StepOutput,
    StepStarted,
)
from agent.core.languages import ENGLISH, get_language_name
from agent.core.models import Outcome, Plan, PlanStep
from agent.core.run_state import AttemptState, RunState
from agent.execution.catalogue import build_catalogue
from agent.execution.decide import Start, replan_reason
from agent.execution.ground import build_ground, quotes_ground
from agent.execution.planner_call import PlannerCall, answer_started, build_answer_output, choose_answer_form
from agent.execution.stages.guard import explicit_tool_calls
from agent.execution.static_plans import (
    KNOWLEDGE_TOOL,
    LISTING_TOOL,
    plan_completion_only,
    plan_document_listing,
    plan_explicit_calls,
    plan_knowledge_lookup,
    plan_skill,
)
from agent.execution.steps import build_failed_output, record_output
from agent.planning.planner import Planned, PlannerAgent
from agent.planning.request import CompletedStep, PlanningRequest
from agent.planning.required import add_required_tools, extract_context
from agent.planning.rules import RulePlanner, asks_for_listing
from agent.policy.approval import get_plan_feedback, has_side_effect
from agent.run_context.outputs import load_output
from agent.run_context.run import Run
from agent.run_context.run_tools import allowed_tools
from agent.tools.catalogue import Catalogue

_LASTING = frozenset({"ERR_TOOL_INPUT", "ERR_TOOL_UNKNOWN", "ERR_TOOL_DENIED"})
"""Failures of a tool that the same call ends in again."""
PLANNER_REFUSED = "the provider refused the planner's request before; it is not asked again"
NO_MODEL = "no model is configured; set AGENT_LLM_BASE_URL and AGENT_MODEL_FAST"


async def plan(run: Run) -> None:
    """Propose a plan and record it, with every reply that was refused on the way."""
    started = monotonic()
    shown = run.state.answer_start
    reason = replan_reason(run.state) if run.state.plan is not None else None
    planned = await _replanned(run, reason) if reason is not None else await _first(run)
    if planned.answer is None and run.state.answer_start is not shown:
        void = AnswerStarted(tier=None, model=None, reason="what was shown was not the answer", restarted=True)
        await run.note(void)
    if planned.question:
        await run.emit(*_list_rejections(planned), InputRequested(question=planned.question))
        return
    planned = await _with_what_is_required(run, planned, reason)
    proposed = PlanProposed(
        plan=_annotated(run, planned.plan),
        requested=planned.requested,
        effective=planned.effective,
        fallback_reason=planned.fallback_reason or None,
        replan_reason=reason,
        adjusted=planned.adjusted,
        tainted=(
            run.state.tainted
            or (reason is not None and _has_read_outside(run.state))
            or quotes_ground(planned.plan, planned.ground, _user_words(run.state))
        ),
        asked_for=reason is not None and bool(get_plan_feedback(run.state)),
        final=_leaves_no_other(run, planned.plan, reason),
        duration=monotonic() - started,
    )
    await run.emit(*_list_rejections(planned), proposed)
    duration = monotonic() - started
    if planned.answer is not None:
        was_streamed = run.state.answer_start is not shown
        begin = () if was_streamed else (answer_started(run),)
        await _record_answer(run, proposed.plan, build_answer_output(run, planned.answer), begin, duration=duration)
    elif planned.unreachable is not None and len(proposed.plan.steps) == 1 and proposed.plan.steps[0].is_completion:
        await _record_answer(run, proposed.plan, build_failed_output(planned.unreachable), (), duration=duration)


def _list_rejections(planned: Planned) -> list[PlanRejected]:
    return [PlanRejected(problems=tuple(reply.problems), excerpt=reply.excerpt) for reply in planned.rejected]


async def _record_answer(
    run: Run, proposed: Plan, output: StepOutput, begin: Sequence[AnswerStarted], *, duration: float
) -> None:
    """Records what the planner's call came to as the first attempt of the plan's one step. What is found wrong with an
    answer there is written again by a completion."""
    (step,) = proposed.steps
    bodies: list[EventBody] = [*begin, StepStarted(tainted=run.state.tainted)]
    drafts = [EventDraft(body, step.id, 1) for body in bodies]
    await record_output(run, Start(step, 1), output, drafts, duration=duration)


def _leaves_no_other(run: Run, proposed: Plan, reason: str | None) -> bool:
    """Whether nobody could make another plan than this one. The rules try again where a room requires tools, once more
    broadly; where that failed for what the request itself asks for, as a collection that is not there, a third plan
    would be the second."""
    if not _requires_tools(run):
        only_written = all(step.is_completion for step in proposed.steps) and not run.room.gates
        return only_written or not run.plans_with_model or _is_fixed(run)
    if reason is None or run.plans_with_model or run.state.gates or run.state.plan is None:
        return False
    last = [run.state.get_step(step.id).last for step in run.state.plan.steps]
    codes = {one.output.error_code for one in last if one is not None and one.output is not None}
    failed = codes - {None}
    return bool(failed) and failed <= _LASTING


def _has_read_outside(state: RunState) -> bool:
    """Whether any step has brought text from outside into the run."""
    outputs = (attempt.output for step in state.steps.values() for attempt in step.attempts)
    return any(output is not None and output.tainted for output in outputs)


async def _with_what_is_required(run: Run, planned: Planned, reason: str | None) -> Planned:
    """Returns the plan of any origin with the tools this room requires; without a model such a room plans again too:
    what failed is tried once more, and searched for more broadly."""
    if not _requires_tools(run):
        return planned
    named = {call.tool for call in explicit_tool_calls(run.state.request)}
    asked = await _planning_request(run, reason)
    adjusted = add_required_tools(planned.plan, asked, has_model=run.works_with_model, named=named)
    return replace(planned, plan=adjusted.plan, adjusted=(*planned.adjusted, *adjusted.notes))


def _annotated(run: Run, proposed: Plan) -> Plan:
    """The plan with the model its completion will be sent to, where the plan asks for a tier."""
    if not run.works_with_model or not any(step.is_completion and step.tier for step in proposed.steps):
        return proposed
    steps = tuple(
        step.model_copy(update={"provider": run.engine.models.get_model_name(step.tier, run.room)})
        if step.is_completion and step.tier
        else step
        for step in proposed.steps
    )
    return proposed.model_copy(update={"steps": steps})


def _is_fixed(run: Run) -> bool:
    """Whether the route leaves nothing to plan: there is no other way to ask a plain question or to obey a command."""
    route = run.state.understanding.route if run.state.understanding else "plan"
    return route not in ("plan", "skill")


async def _first(run: Run) -> Planned:
    """The first plan, by the route the request was given."""
    understood = run.state.understanding
    route = understood.route if understood else "plan"
    why = understood.reason if understood else ""
    if route == "tool_calls":
        return _by_rule(plan_explicit_calls(run, why))
    if route == "skill" and understood is not None and understood.skill is not None:
        return _by_rule(plan_skill(run, understood.skill, understood.question, why))
    if run.room.knowledge and asks_for_listing(run.state.question) and LISTING_TOOL in allowed_tools(run):
        return _by_rule(plan_document_listing(run))
    if run.room.knowledge and route in ("plan", "direct") and KNOWLEDGE_TOOL in run.engine.registry:
        return _by_rule(plan_knowledge_lookup(run))
    if route in ("task", "greeting", "direct") and not _requires_tools(run):
        return _by_rule(plan_completion_only(run, why))
    request = await _planning_request(run, None)
    if route == "command" and not _requires_tools(run):
        return _by_rule(RulePlanner().plan(request).model_copy(update={"origin_reason": why}))
    return await _planned(run, request)


async def _replanned(run: Run, reason: str) -> Planned:
    return await _planned(run, await _planning_request(run, reason))


async def _planned(run: Run, request: PlanningRequest) -> Planned:
    if run.engine.settings.planner_mode == "rules":
        return _by_rule(RulePlanner().plan(request, has_model=run.works_with_model))
    if not run.has_model:
        ruled = RulePlanner().plan(request).model_copy(update={"origin_reason": NO_MODEL})
        if run.engine.settings.planner_mode == "auto":  # nobody asked for a model: nothing has fallen back
            return _by_rule(ruled)
        return Planned(plan=ruled, requested="llm", effective="rules", fallback_reason=NO_MODEL, rejected=())
    if _planner_is_refused(run):
        ruled = RulePlanner().plan(request, has_model=run.works_with_model)
        ruled = ruled.model_copy(update={"origin_reason": PLANNER_REFUSED})
        return Planned(plan=ruled, requested="llm", effective="rules", fallback_reason=PLANNER_REFUSED, rejected=())
    planner = PlannerAgent(PlannerCall(run, request.answer_form), has_writer=run.works_with_model)
    return replace(await planner.plan(request), ground=request.ground)


def _planner_is_refused(run: Run) -> bool:
    """Whether the provider has refused the planner's request in this run: it would refuse the next one too."""
    return any(
        isinstance(event.body, ModelReturned)
        and event.body.purpose == "planner"
        and event.body.error_code == ModelRequestError.code
        for event in run.events
    )


def _requires_tools(run: Run) -> bool:
    return run.state.is_gated and bool(run.room.required_tools)


async def _planning_request(run: Run, reason: str | None) -> PlanningRequest:
    state, room = run.state, run.room
    previous = state.plan.steps if state.plan else ()
    completed = []
    redo = _to_redo(state)
    for step in state.list_succeeded_steps():
        if step.id in redo:
            continue
        output = state.get_step(step.id).output
        if output is not None and not step.is_completion:
            loaded = await load_output(run, output)
            completed.append(CompletedStep(step=step, text=loaded.text, tainted=loaded.tainted))
    retrieved = state.retrieval
    question = state.understanding.question if state.understanding else state.prompt
    facts = extract_context(state.request.metadata)
    catalogue = _catalogue(run, reason)
    return PlanningRequest(
        question=question,
        room=room,
        catalogue=catalogue,
        history=retrieved.history if retrieved else (),
        # What came from outside must not have a say in what is done; the answer may still quote it, as data.
        memories=tuple(item for item in retrieved.items if not item.tainted) if retrieved else (),
        completed=tuple(completed),
        replan_reason=reason,
        previous=state.plan,
        used_ids=frozenset(step.id for proposed in state.plans for step in proposed.plan.steps),
        failed=tuple(step for step in previous if state.get_step(step.id).status != "succeeded"),
        original=state.prompt,
        context=facts,
        happened=_happened(state),
        topics=run.engine.extensions.match_topics(f"{state.prompt}\n{question}", facts),
        redo=_tools_to_redo(state) | {step.tool for step in previous if state.get_step(step.id).status == "replan"},
        tainted=state.tainted,
        needs_completion=bool(room.persona) or room.citations or "response_format" in state.request.options,
        answer_form=choose_answer_form(run),
        may_ask=state.request.interactive and not state.is_hidden and not _requires_tools(run),
        earlier_results=retrieved.earlier_results if retrieved else (),
        instructions=_caller_instructions(state),
        ground=await build_ground(run, catalogue) if run.plans_with_model else "",
        answer_language=_answer_language(state),
    )


def _user_words(state: RunState) -> str:
    """What the user has written in this conversation."""
    history = state.retrieval.history if state.retrieval else ()
    spoken = [message.content for message in history if message.role == "user"]
    question = state.understanding.question if state.understanding else ""
    return "\n".join((state.prompt, question, *spoken))


def _caller_instructions(state: RunState) -> str:
    """The caller's own system messages: an answer follows them."""
    history = state.retrieval.history if state.retrieval else ()
    return "\n\n".join(m.content for m in history if m.role in ("system", "developer") and m.content)


def _answer_language(state: RunState) -> str:
    """The language of a request that was not translated, where it is another than English."""
    understood = state.understanding
    if understood is None or understood.language == ENGLISH or understood.translated:
        return ""
    return get_language_name(understood.language)


def _happened(state: RunState) -> tuple[PlanStep, ...]:
    """The calls that changed something and returned, and whose result a model found fault with. Where a rule saw an
    error in it, the planner may try again."""
    calls = (step for proposed in state.plans for step in proposed.plan.steps if step.action != "skill")
    return tuple(step for step in calls if step.effect == "effect" and _only_judged_away(state.get_step(step.id).last))


def _only_judged_away(attempt: AttemptState | None) -> bool:
    verdict = attempt.verdict if attempt is not None else None
    return verdict is not None and verdict.outcome is not Outcome.SUCCESS and verdict.by == "model"


def _tools_to_redo(state: RunState) -> frozenset[str]:
    """The tools whose results a gate did not accept."""
    return frozenset(tool for gate in state.gates for tool in gate.redo)


def _to_redo(state: RunState) -> frozenset[str]:
    """The steps of those tools, and every step that builds on one: a new plan does not keep them."""
    tools, found = _tools_to_redo(state), set[str]()
    for step in state.plan.steps if state.plan else ():  # dependencies come first
        if step.tool in tools or found & set(step.depends_on):
            found.add(step.id)
    return frozenset(found)


def _catalogue(run: Run, reason: str | None) -> Catalogue:
    """What a plan may be made of. Once text from outside has been read, a new plan takes up no way to change anything
    that the first one did not have: that text may have asked for it."""
    catalogue = build_catalogue(run)
    state = run.state
    if reason is None or get_plan_feedback(state) or not _has_read_outside(state):
        return catalogue
    first = {step.tool for step in state.plans[0].plan.steps}
    return Catalogue(
        skills=tuple(card for card in catalogue.skills if card.effect == "read" or card.name in first),
        tools=tuple(
            spec for spec in catalogue.tools if not has_side_effect(spec.name, spec.effect) or spec.name in first
        ),
    )


def _by_rule(ruled: Plan) -> Planned:
    """A plan that no planner was asked for: nothing was requested that fell back."""
    return Planned(plan=ruled, requested="rules", effective="rules", fallback_reason=None, rejected=())
