"""Plan: makes the plan of the request, or the next one after a REPLAN. Simple routes need no planner call."""

from collections.abc import Sequence
from dataclasses import replace
from time import monotonic

from agent.answers.answer_without_model import build_alternatives_output, describe_alternatives
from agent.core.errors import ModelRequestError, PlanInvalidError
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
    TaintSource,
)
from agent.core.models import Plan, PlanStep
from agent.core.models.request import read_explicit_tool_calls
from agent.core.run_state import RunState
from agent.execution.decide import Start, find_replan_reason, is_in_round, needs_round
from agent.execution.ground_quotes import GroundQuotes
from agent.execution.open_questions import WITHHELD_QUESTION
from agent.execution.plan_replies import settle_reply
from agent.execution.plan_sources import find_first_plan, requires_tools
from agent.execution.planner_call import PlannerCall, build_answer_output, note_answer_started
from agent.execution.repeated_calls import LASTING_ERRORS, is_only_repeating_failures
from agent.execution.run_catalogue import build_catalogue, list_callable, list_read_claims
from agent.execution.stages.planning_request import build_planning_request, has_read_outside
from agent.execution.step_labels import label_steps
from agent.execution.steps import build_failed_output, record_output
from agent.planning.open_parts import find_check_reason
from agent.planning.planned import Planned, Rejection, build_ruled
from agent.planning.planner import PlannerAgent
from agent.planning.request import PlanningRequest
from agent.planning.required import add_required_tools
from agent.planning.rounds.planner import RoundPlanner
from agent.planning.rules import RulePlanner, plan_by_rules
from agent.policy.approval import get_plan_feedback
from agent.policy.guardrails.message_labels import split_attachments
from agent.policy.guardrails.run_links import split_messages
from agent.run_context.outputs import list_results, reads_history
from agent.run_context.run import Run
from agent.run_context.run_hooks import PlanInquiry

PLANNER_REFUSED = "the provider refused the planner's request before; it is not asked again"
NO_MODEL = "no model is configured; `stepgate models use` connects one"


async def plan(run: Run) -> None:
    """Makes a plan and records it, with every rejected reply."""
    started = monotonic()
    shown = run.state.answer_start
    is_round = run.state.plan is not None and (needs_round(run.state) or is_in_round(run.state))
    reason = None if run.state.plan is None or needs_round(run.state) else find_replan_reason(run.state)
    if run.state.plan is None:
        inquiry = PlanInquiry(run, _build_first_request, _make_plan)
        planned = await find_first_plan(run, inquiry)
    else:
        if run.decides_in_rounds:
            from agent.answers.list_selections import select_in_lists  # noqa: PLC0415 - only small models need it

            await select_in_lists(run, await list_results(run))
        planned = await _make_next_plan(run, await build_planning_request(run, reason))
    if planned.recorded:
        await run.emit(*planned.recorded)
        await run.redaction.load_stored_texts()
        return
    if planned.answer is None and run.state.answer_start is not shown:
        void = AnswerStarted(tier=None, model=None, reason="the text so far was not the answer", restarted=True)
        await run.note(void)
    if planned.question:
        await _ask_user(run, planned)
        return
    reply = get_plan_feedback(run.state)
    if reply and (settled := await settle_reply(run, planned, reply, reason)) is not None:
        await run.note_visibly(*_list_rejections(planned), settled)
        return
    planned = await _add_required_tools(run, planned, reason)
    tainted_by = _list_taint_sources(run, planned)
    proposed = PlanProposed(
        plan=_set_completion_model(run, planned.plan),
        requested=planned.requested,
        effective=planned.effective,
        fallback_reason=planned.fallback_reason or None,
        approval_reason=planned.approval_reason or (find_check_reason(planned.plan) if run.decides_in_rounds else ""),
        replan_reason=reason,
        adjusted=planned.adjusted,
        decided_changes=planned.decided_changes,
        refused_calls=planned.refused_calls,
        need=planned.need,
        tainted=bool(tainted_by),
        tainted_by=tainted_by,
        labels=label_steps(run, planned.plan, tainted_by) if tainted_by else (),
        asked_for=reason is not None and bool(get_plan_feedback(run.state)),
        is_round=is_round,
        follows=planned.follows,
        read_claims=list_read_claims(run, planned.plan),
        final=_is_final_plan(run, planned.plan, reason),
        duration=monotonic() - started,
    )
    await run.note_visibly(*_list_rejections(planned), proposed)
    was_streamed = run.state.answer_start is not shown
    await _answer_at_once(run, planned, proposed.plan, was_streamed=was_streamed, duration=monotonic() - started)


async def _ask_user(run: Run, planned: Planned) -> None:
    checked = await run.redaction.check_answer(planned.question)
    question = checked.text if checked.failure is None else WITHHELD_QUESTION  # nor is it in the log
    await run.emit(*_list_rejections(planned), InputRequested(question=run.redaction.clean_question(question)))


async def _answer_at_once(run: Run, planned: Planned, proposed: Plan, *, was_streamed: bool, duration: float) -> None:
    """Records the answer of a plan whose answer is known already: the planner's own, or why there is none."""
    if planned.answer is not None:
        begin = () if was_streamed else (note_answer_started(run),)
        await _record_answer(run, proposed, build_answer_output(run, planned.answer), begin, duration=duration)
        return
    is_by_rules = planned.effective == "rules" and _writes_only(proposed)
    without_model = planned.fallback_reason if is_by_rules else None
    if without_model and (alternatives := describe_alternatives(run)):
        output = build_alternatives_output(alternatives, without_model)
        await _record_answer(run, proposed, output, (), duration=duration)
    elif planned.unreachable is not None and len(proposed.steps) == 1 and proposed.steps[0].is_completion:
        await _record_answer(run, proposed, build_failed_output(planned.unreachable), (), duration=duration)


def _writes_only(proposed: Plan) -> bool:
    return all(step.is_completion for step in proposed.steps)


def _list_rejections(planned: Planned) -> list[PlanRejected]:
    return [PlanRejected(problems=tuple(reply.problems), excerpt=reply.excerpt) for reply in planned.rejected]


async def _record_answer(
    run: Run, proposed: Plan, output: StepOutput, begin: Sequence[AnswerStarted], *, duration: float
) -> None:
    """Records the planner's answer or its error as the first attempt of the plan's only step. If the checks reject the
    answer, a completion writes it again."""
    (step,) = proposed.steps
    bodies: list[EventBody] = [*begin, StepStarted(tainted=run.state.has_outside_text)]
    drafts = [EventDraft(body, step.id, 1) for body in bodies]
    await record_output(run, Start(step, 1), output, drafts, duration=duration)


def _is_final_plan(run: Run, proposed: Plan, reason: str | None) -> bool:
    """Whether a replan would give the same plan. In a room with required tools the rules replan once, with
    broader arguments. If that fails because of the request itself (such as an unknown collection), the plan is
    final."""
    if reason is not None and not get_plan_feedback(run.state) and is_only_repeating_failures(run.state, proposed):
        return True  # the planner was told of the failure, and has no other way
    if not requires_tools(run):
        only_written = _writes_only(proposed) and not run.room.gates
        return only_written or not run.plans_with_model or _is_fixed_route(run)
    if reason is None or run.plans_with_model or run.state.gates or run.state.plan is None:
        return False
    last = [run.state.get_step(step.id).last for step in run.state.plan.steps]
    codes = {one.output.error_code for one in last if one is not None and one.output is not None}
    failed = codes - {None}
    return bool(failed) and failed <= LASTING_ERRORS


async def _add_required_tools(run: Run, planned: Planned, reason: str | None) -> Planned:
    """The plan with the tools that this room requires. Without a model, such a room also replans: it repeats
    failed calls and searches with broader arguments."""
    if not requires_tools(run):
        return planned
    registry = run.engine.registry
    named = {registry.resolve_in_room(run.room, call.tool) for call in read_explicit_tool_calls(run.state.request)}
    request = await build_planning_request(run, reason)
    adjusted = add_required_tools(planned.plan, request, has_model=run.works_with_model, named=named)
    return replace(planned, plan=adjusted.plan, adjusted=(*planned.adjusted, *adjusted.notes))


def _set_completion_model(run: Run, proposed: Plan) -> Plan:
    """The plan with the model name of its completion, if the plan names a tier."""
    if not run.works_with_model:
        return proposed
    steps = tuple([_set_step_model(run, step) if step.is_completion else step for step in proposed.steps])
    return proposed.model_copy(update={"steps": steps})


def _set_step_model(run: Run, step: PlanStep) -> PlanStep:
    if step.tier is None:
        return step
    return step.model_copy(update={"provider": run.engine.models.get_model_name(step.tier, run.room)})


def _is_fixed_route(run: Run) -> bool:
    """Whether the route determines the plan, as for a plain question or a command."""
    route = run.state.understanding.route if run.state.understanding else "plan"
    return route not in ("plan", "skill", "recipe")


async def _build_first_request(run: Run) -> PlanningRequest:
    return await build_planning_request(run, None)


async def _make_next_plan(run: Run, request: PlanningRequest) -> Planned:
    """The plan after the current one, of the feature that made it or of the planner: the next round, or another
    way after a failure or a person's reply."""
    for hooks in run.hooks:
        planned = await hooks.plan_next(run, request)
        if planned is not None:
            return planned
    return await _make_plan(run, request)


def _expand(run: Run, planned: Planned) -> Planned:
    """The plan with the steps that features put in place of what they offered. Raises `PlanInvalidError`."""
    for hooks in run.hooks:
        planned = hooks.expand_plan(run, planned)
    return planned


async def _make_plan(run: Run, request: PlanningRequest) -> Planned:
    if run.engine.settings.planner_mode == "rules":
        return build_ruled(RulePlanner().plan(request, has_model=run.works_with_model))
    if not run.has_model:
        ruled = plan_by_rules(request, NO_MODEL)
        # In the mode `auto` the settings do not require a model, so that rules are no fallback.
        return build_ruled(ruled.plan) if run.engine.settings.planner_mode == "auto" else ruled
    if _is_planner_refused(run):
        return plan_by_rules(request, PLANNER_REFUSED, has_model=run.works_with_model)
    call = PlannerCall(run, request.answer.form)
    kind = RoundPlanner if request.decides_in_rounds else PlannerAgent
    planner = kind(call, has_writer=run.works_with_model)
    planned = await planner.plan(request)
    try:
        planned = _expand(run, planned)
    except PlanInvalidError as error:  # what a feature offered does not fit: plan with the tools themselves
        whole = replace(request, catalogue=list_callable(request.catalogue))
        rejected = Rejection(tuple(error.problems), "")
        planned = await planner.plan(whole)
        planned = replace(planned, rejected=(rejected, *planned.rejected))
    return replace(planned, ground=request.ground)


def _is_planner_refused(run: Run) -> bool:
    """Whether the provider rejected a planner's call in this run. It would reject the next one too."""
    return any(
        isinstance(event.body, ModelReturned)
        and event.body.purpose == "planner"
        and event.body.error_code == ModelRequestError.code
        for event in run.events
    )


def _list_taint_sources(run: Run, planned: Planned) -> tuple[TaintSource, ...]:
    """The untrusted text that may have influenced the plan."""
    state = run.state
    sources: dict[TaintSource, bool] = {
        "conversation": state.tainted,
        "reply": planned.is_embedded and _may_quote(run, planned),
        "recipe": "recipe" in planned.tainted_by,
        "results": state.plan is not None and has_read_outside(state),
        "ground": _quotes_ground(run, planned),
    }
    return (*(name for name, is_there in sources.items() if is_there), *_list_message_sources(state, planned))


def _list_message_sources(state: RunState, planned: Planned) -> tuple[TaintSource, ...]:
    """The untrusted text that a request brings into a plan. A plan made by rules reads the prompt only, but the model
    of its skill reads the room's instructions, and that of the room's own skill the messages too.
    """
    if state.retrieval is None:
        return ()
    by_model = planned.effective == "llm" or planned.repeats_model
    skills = [step for step in planned.plan.steps if step.action == "skill"]
    labels = state.retrieval.labels if by_model or any(reads_history(state, step) for step in skills) else ()
    in_room: list[TaintSource] = ["room"] if (by_model or skills) and state.room.from_outside else []
    sources: list[TaintSource] = [
        "unknown_answers" if label.source == "unknown_answer" else "history" for label in labels if not label.trusted
    ]
    if state.retrieval.prompt_label is not None:
        sources.append("attachment")
    return tuple(dict.fromkeys([*sources, *in_room]))


def _may_quote(run: Run, planned: Planned) -> bool:
    """Whether a plan among other words may be a quotation: the prompt held text from outside, or one of its texts
    writes a call of the plan's tools as JSON."""
    state, recalled = run.state, run.state.retrieval
    if state.has_outside_text or state.has_unknown_answers or state.room.from_outside or has_read_outside(state):
        return True
    question = state.understanding.question if state.understanding else ""
    history = [message.content for message in recalled.history] if recalled else []
    memories = [item.text for item in recalled.items] if recalled else []
    texts = [state.prompt, question, planned.ground, *state.room.operator_texts, *history, *memories]
    names = {step.tool for step in planned.plan.steps if step.is_work}
    return any("{" in text and name in text for text in texts for name in names)


def _quotes_ground(run: Run, planned: Planned) -> bool:
    """Whether a step does what names of files, instructions of servers or descriptions of others' tools say, or fetches
    an address with such names.
    """
    state, registry = run.state, run.engine.registry
    changing = {step.id for step in planned.plan.steps if state.has_side_effect(step.tool, step.effect)}
    steps = [
        step
        for step in planned.plan.steps
        if step.id in changing or ((spec := registry.find_spec(step.tool)) is not None and spec.where_args)
    ]
    if not planned.ground or not steps:
        return False
    specs = {spec.name: spec for spec in build_catalogue(run).tools}
    quotes = GroundQuotes(planned.ground, _list_own_texts(state), specs)
    return any(quotes.quotes(step, changes=step.id in changing) for step in steps)


def _list_own_texts(state: RunState) -> list[str]:
    """The user's and the operator's texts in this conversation, and what is remembered as the user's own."""
    recalled = state.retrieval
    question = state.understanding.question if state.understanding else ""
    spoken = [message.content for message in recalled.history if message.role == "user"] if recalled else []
    remembered = [item.text for item in recalled.items if not item.tainted] if recalled else []
    prompts = () if state.has_outside_prompt else (state.prompt, question)
    own = (split_attachments(text).own for text in (*prompts, *spoken))
    return [*state.room.operator_texts, *split_messages(state)[0], *remembered, *own]
