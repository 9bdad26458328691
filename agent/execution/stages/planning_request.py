"""The request of a run to its planner: what was asked, what may be called and what happened so far."""

from zoneinfo import ZoneInfo

from agent.core.models import Outcome, PlanStep
from agent.core.run_state import AttemptState, RunState
from agent.execution.decide import find_doubt
from agent.execution.ground import build_ground
from agent.execution.ordered_changes import make_order_check
from agent.execution.plan_sources import requires_tools
from agent.execution.planner_call import choose_answer_form
from agent.execution.repeated_calls import may_have_happened
from agent.execution.rounds import build_round_catalogue, list_round_calls
from agent.execution.run_catalogue import build_catalogue
from agent.planning.open_parts import find_allowed_changes, has_changed, list_open_parts, list_untried_parts
from agent.planning.request import (
    NO_EARLIER_PLANS,
    NO_ROUNDS,
    AnswerRules,
    CompletedStep,
    EarlierPlans,
    PlanningRequest,
    RoundProgress,
)
from agent.planning.required import extract_context
from agent.policy.approval import asks_about_changes, get_plan_feedback
from agent.run_context.message_labels import collect_replies, list_days
from agent.run_context.outputs import load_output
from agent.run_context.run import Run
from agent.text.language import ENGLISH, get_language_name
from agent.tools.catalogue import Catalogue


async def build_planning_request(run: Run, reason: str | None) -> PlanningRequest:
    """What the planner of a run needs for its next plan; `reason` is why the last one is replaced. Raises
    `StoreError`."""
    state, room, in_rounds = run.state, run.room, run.decides_in_rounds
    retrieved = state.retrieval
    question = state.understanding.question if state.understanding else state.prompt
    metadata = state.request.metadata
    zone = ZoneInfo(run.engine.settings.timezone)
    # Rounds share one catalogue, which endpoints keep in their cache. Their changes after text from outside are asked
    # about one by one.
    catalogue = await build_round_catalogue(run) if in_rounds else _build_plan_catalogue(run, reason)
    return PlanningRequest(
        question=question,
        room=room,
        catalogue=catalogue,
        history=retrieved.history if retrieved else (),
        # External text must not influence the plan. The answer may still quote it as data.
        memories=tuple(item for item in retrieved.items if not item.tainted) if retrieved else (),
        original=state.prompt,
        context=extract_context(metadata) if "context" in metadata else {},
        topics=run.engine.extensions.match_topics(room, f"{state.prompt}\n{question}", metadata),
        ground=await build_ground(run, catalogue) if run.plans_with_model else "",
        named_days=list_days(state, zone),
        zone=zone,
        replies=tuple(reply.text for reply in collect_replies(state)),
        earlier_results=retrieved.earlier_results if retrieved else (),
        answer=_build_answer_rules(run),
        may_ask=state.request.interactive and not state.is_hidden and not requires_tools(run),
        checks_answers=run.profile.checks_answers,
        earlier_plans=await _collect_earlier_plans(run, reason) if state.plan is not None else NO_EARLIER_PLANS,
        # A first plan follows no verdict.
        find_problems=None if in_rounds or state.plan is None else make_order_check(run),
        decides_in_rounds=in_rounds,
        rounds=await list_round_calls(run) if in_rounds else (),
        progress=_build_progress(run) if in_rounds else NO_ROUNDS,
    )


def _build_answer_rules(run: Run) -> AnswerRules:
    """What the room and the caller require of the answer."""
    state, room = run.state, run.room
    return AnswerRules(
        form=choose_answer_form(run),
        needs_completion=bool(room.persona) or room.citations or "response_format" in state.request.options,
        instructions=_join_caller_instructions(state),
        language=_get_answer_language(state),
    )


async def _collect_earlier_plans(run: Run, reason: str | None) -> EarlierPlans:
    """What the plans so far leave to the next one. Raises `StoreError`."""
    state = run.state
    dropped = _list_steps_to_redo(state)
    completed = {}
    for step in state.list_succeeded_steps():
        output = state.get_step(step.id).output
        if step.is_work and step.id not in dropped and output is not None:
            loaded = await load_output(run, output)
            completed[step.id] = CompletedStep(step=step, text=loaded.text, tainted=loaded.tainted)
    replanned = {step.tool for step in state.plan_steps if state.get_step(step.id).status == "replan"}
    return EarlierPlans(
        last=state.plan,
        replan_reason=reason,
        completed=completed,
        failed=tuple(step for step in state.plan_steps if state.get_step(step.id).status != "succeeded"),
        happened=_list_effects_not_to_repeat(state),
        used_ids=frozenset(state.steps_of_all_plans),
        redo=_list_tools_to_redo(state) | replanned,
    )


def _build_progress(run: Run) -> RoundProgress:
    """What the rounds of the run have found so far."""
    state = run.state
    return RoundProgress(
        open_parts=list_open_parts(state),
        untried_parts=list_untried_parts(state),
        has_changed=has_changed(state),
        has_read_outside=has_read_outside(state),
        may_change=find_allowed_changes(state),
        need=next((one.need for one in reversed(state.plans) if one.need), ""),
        doubt=find_doubt(state, state.plan) if state.plan is not None else "",
        asks_about_changes=asks_about_changes(state),
        may_call=state.round_count < run.room.budgets.max_rounds,
    )


def _join_caller_instructions(state: RunState) -> str:
    """The caller's system messages, which instruct the answer."""
    history = state.retrieval.history if state.retrieval else ()
    return "\n\n".join(m.content for m in history if m.role in ("system", "developer") and m.content)


def _get_answer_language(state: RunState) -> str:
    """The language of a request that was not translated; "" for English."""
    understood = state.understanding
    if understood is None or understood.language == ENGLISH or understood.translated:
        return ""
    return get_language_name(understood.language)


def _list_effects_not_to_repeat(state: RunState) -> tuple[PlanStep, ...]:
    """The side effects that returned a result which a model rejected, and those whose outcome is unknown while nothing
    was read since. If a rule found an error in the result, the planner may repeat the call."""
    calls = (step for proposed in state.plans for step in proposed.plan.steps if step.action != "skill")
    return tuple(
        step for step in calls if step.effect == "effect" and _must_not_repeat(state, state.get_step(step.id).last)
    )


def _must_not_repeat(state: RunState, attempt: AttemptState | None) -> bool:
    return _was_rejected_by_model(attempt) or may_have_happened(state, attempt)


def _was_rejected_by_model(attempt: AttemptState | None) -> bool:
    verdict = attempt.verdict if attempt is not None else None
    return verdict is not None and verdict.outcome is not Outcome.SUCCESS and verdict.by == "model"


def _list_tools_to_redo(state: RunState) -> frozenset[str]:
    """The tools whose results a gate rejected."""
    return frozenset(tool for gate in state.gates for tool in gate.redo)


def _list_steps_to_redo(state: RunState) -> frozenset[str]:
    """The steps of those tools, and all steps that depend on them. A new plan drops their results."""
    tools, redone = _list_tools_to_redo(state), set[str]()
    for step in state.plan_steps:  # dependencies come first
        if step.tool in tools or redone & set(step.depends_on):
            redone.add(step.id)
    return frozenset(redone)


def _build_plan_catalogue(run: Run, reason: str | None) -> Catalogue:
    """The skills and tools of a plan. After external text was read, a replan gains no side effects that the
    first plan lacked, because the external text may have asked for them."""
    catalogue = build_catalogue(run)
    state = run.state
    if reason is None or get_plan_feedback(state) or not has_read_outside(state):
        return catalogue
    first = {step.tool for step in state.plans[0].plan.steps}
    return Catalogue(
        skills=tuple(card for card in catalogue.skills if card.effect == "read" or card.name in first),
        tools=tuple(spec for spec in catalogue.tools if not spec.has_side_effect or spec.name in first),
    )


def has_read_outside(state: RunState) -> bool:
    """Whether any step returned external text."""
    outputs = (attempt.output for attempt in state.list_attempts())
    return any(output is not None and output.tainted for output in outputs)
