"""Decides when a person must approve a run. Pure.

A plan is approved as a whole. Two kinds of calls are approved one by one: those that a skill's model makes up, and
those whose arguments come from an untrusted source.
"""

from agent.core.events import ApprovalItem, ApprovalRequested
from agent.core.models import PlanStep
from agent.core.run_state import AttemptState, RunState
from agent.policy.approval.effect_arguments import find_asked_args
from agent.policy.approval.read_claims import describe_read_claim, list_read_servers

_OUTSIDE_SOURCE = "written by a model that had read text from outside, not by you"


def find_approval_reason(state: RunState) -> str | None:
    """The reason why the current plan needs approval before it runs, or None if it does not or was approved."""
    plan = state.plan
    if plan is None or is_plan_approved(state):
        return None
    pending = [step for step in plan.steps if state.get_step(step.id).status != "succeeded"]
    changing = [step for step in pending if step.action != "skill" and state.has_side_effect(step.tool, step.effect)]
    claims = state.plans[-1].read_claims
    allowed = list_read_servers(state) if claims else ()
    changing = [step for step in changing if claims.get(step.tool) not in allowed]
    only_reads = bool(changing) and all(step.tool in claims for step in changing)
    read_reason = describe_read_claim(claims[step.tool] for step in changing) if only_reads else ""
    policy = state.room.approval
    if any(step.is_work for step in pending):
        if policy == "always":
            return "this room requires approval of every plan"
        if state.request.metadata.get("approve_plan") is True:
            return "the request asks for approval of its plan"
    wanted = next((proposed.approval_reason for proposed in reversed(state.plans) if proposed.approval_reason), "")
    if wanted and any(state.has_side_effect(step.tool, step.effect) for step in pending):
        return wanted
    # The client sees its own calls before it makes them, and may refuse: this gateway changes nothing with them.
    from_outside = [step for step in changing if _is_asked_about_with_plan(state, step)]
    if any(step.tool not in state.client_tool_names for step in from_outside):
        return read_reason or "the plan was made after untrusted text was read, and it changes something"
    if policy == "side_effects" and changes_several(state):
        return "the message asks for several things, and this changes something"
    if changing and policy == "side_effects" and not _are_calls_named_by_request(state):
        return read_reason or "the plan changes something"
    return None


def asks_about_changes(state: RunState) -> bool:
    """Whether a person is asked about each plan that changes something, whatever its values are."""
    return state.room.approval != "never" or state.request.metadata.get("approve_plan") is True


def _is_asked_about_with_plan(state: RunState, step: PlanStep) -> bool:
    """Whether untrusted text may have chosen something in a step that a person must allow before the plan begins.

    With `ask_where` that is not its content; whether an id was listed is seen when the call is made, which then asks.
    """
    proposed = state.plans[-1]
    label = proposed.get_label(step.id)
    if label is None or not label.tool_trusted or state.room.effects == "ask_any":
        return proposed.is_from_outside(step.id)
    roles = {name: label.roles.get(name, "other") for name in label.untrusted_args}
    return proposed.tainted and bool(find_asked_args(roles, state.room.effects, listed=roles))


def changes_several(state: RunState) -> bool:
    """Whether the plan hands several requests of one message to sub-agents, and one of them changes something.

    It is approved as a whole, before any of it is begun."""
    read = state.classified
    return read is not None and len(read.intents) > 1 and bool(read.changing) and read.task_plan is not None


def is_plan_approved(state: RunState) -> bool:
    """Whether a person has approved the current plan."""
    return find_plan_approval(state) is not None


def find_plan_approval(state: RunState) -> ApprovalRequested | None:
    """The request by which a person approved the current plan, or None."""
    if not state.decisions:
        return None
    version = state.plan.version if state.plan else 0
    for request in reversed(state.approvals):
        decided = state.decisions.get(request.approval_id)
        is_approved = decided is not None and (decided.decision, decided.plan_version) == ("approved", version)
        if request.call_id is None and is_approved:
            return request
    return None


def get_approved_item(state: RunState, step_id: str) -> ApprovalItem | None:
    """What a person saw of a step of the current plan when they approved it; None for a step that they edited."""
    step = state.find_planned_step(step_id)
    decided = {name for name, decision in state.decisions.items() if decision.decision == "approved"}
    items = [
        item
        for request in state.approvals
        if request.call_id is None and request.approval_id in decided
        for item in request.items
        if item.step_id == step_id and step is not None and (item.tool, item.args) == (step.tool, step.args)
    ]
    return items[-1] if items else None


def is_plan_awaiting_approval(state: RunState) -> bool:
    """Whether the current plan has an open approval request."""
    return any(request.call_id is None for request in state.pending_approvals)


def get_plan_feedback(state: RunState) -> str:
    """A person's reply to the plan's approval request if it was neither yes nor no, else ""."""
    if not state.approvals:
        return ""
    version = state.plan.version if state.plan else 0
    feedback = ""
    for request in state.approvals:
        decided = state.decisions.get(request.approval_id)
        if request.call_id is None and request.plan_version == version and decided and decided.decision == "answered":
            feedback = decided.reason
    return feedback


def list_plan_items(state: RunState) -> tuple[ApprovalItem, ...]:
    """The unfinished steps of the current plan, without completions: writing the answer needs no approval."""
    steps = state.plan_steps
    pending = (step for step in steps if state.get_step(step.id).status != "succeeded")
    items = tuple(_build_item(state, step) for step in pending if step.is_work)
    read = state.classified
    if not changes_several(state) or read is None:
        return items
    # Logs of earlier versions name no steps; a person may have removed some of the plan since.
    ids = read.step_ids or tuple(step.id for step in steps)
    changing = {ids[at] for at in read.changing if at < len(ids)}
    return tuple(item.model_copy(update={"changes": True}) if item.step_id in changing else item for item in items)


def get_call_decision(
    state: RunState, attempt: AttemptState | None, call_id: str
) -> tuple[ApprovalRequested, str] | None:
    """The newest request about this call with its decision (empty while open), or None without a request."""
    if attempt is None:
        return None
    request = next((request for request in reversed(state.approvals) if request.call_id == call_id), None)
    if request is None:
        return None
    decided = state.decisions.get(request.approval_id)
    return request, decided.decision if decided else ""


def _are_calls_named_by_request(state: RunState) -> bool:
    """Whether a caller who may approve named exactly these calls with their arguments, which counts as
    approval.
    """
    route = state.understanding.route if state.understanding else "plan"
    return state.may_skip_approval and route == "tool_calls" and state.plans[-1].plan.version == 0


def _build_item(state: RunState, step: PlanStep) -> ApprovalItem:
    """What a person is shown of a step; of the arguments that may come from outside, with that source."""
    label = state.plans[-1].get_label(step.id) if state.plans and state.plans[-1].tainted else None
    untrusted = [name for name in (label.untrusted_args if label is not None else ()) if name in step.args]
    claim = state.plans[-1].read_claims.get(step.tool, "") if state.plans else ""
    return ApprovalItem(
        sources=dict.fromkeys(untrusted, _OUTSIDE_SOURCE),
        roles={name: label.roles.get(name, "other") for name in untrusted} if label is not None else {},
        step_id=step.id,
        tool=step.tool,
        args=step.args,
        intent=step.intent,
        effect=step.effect,
        changes=state.has_side_effect(step.tool, step.effect) and not claim,
        read_claim=claim,
    )
