"""Calls a person has to allow: asked about before they are made, once for each."""

import time
from collections.abc import Awaitable, Callable

from agent.core.approval import Pin, approved, call_decision, changes, digest, request
from agent.core.events import ApprovalDecided, ApprovalItem, Draft, ToolReturned
from agent.core.models import JsonObject
from agent.execution.run import Run
from agent.execution.site import CallSite
from agent.planning.amendments import explained
from agent.planning.references import find_references
from agent.tools import Tool


class ApprovalPendingError(Exception):
    """Raised where a call has to wait for a person. No failure: the attempt goes on once they have decided."""


def pin_of(run: Run) -> Pin:
    """What is known of a tool or skill in this process."""
    engine = run.engine

    def pin(name: str) -> JsonObject:
        if name in engine.registry:
            spec = engine.registry.get(name).spec
            return {"description": spec.description, "input": spec.input_schema, "effect": spec.effect}
        found = next((skill for skill in engine.skills.visible(None) if skill.name == name), None)
        return {"description": found.description} if found is not None else {}

    return pin


def expiry(run: Run) -> float:
    """Until when a question asked now can be answered, UTC seconds."""
    return time.time() + run.engine.settings.approval_seconds


async def allowed(
    run: Run,
    tool: Tool,
    args: JsonObject,
    site: CallSite,
    before: tuple[Draft, ...],
    *,
    tainted: bool,
    foreseen: Callable[[], Awaitable[ToolReturned | None]],
) -> ToolReturned | None:
    """None when this call may be made; what it ends in where a person refused it, or where it is `foreseen` to fail:
    then nobody is asked.

    Raises `ApprovalPendingError` once a person has been asked. `before` is emitted with the question. A reply that is
    neither yes nor no is told to the model; rules ask again, and say what they understand."""
    reason = _why(run, tool, site, tainted=tainted)
    if reason is None:
        return None
    spec = tool.spec
    item = ApprovalItem(
        step_id=site.step_id,
        tool=spec.name,
        args=args,
        intent=_intent(run, site),
        effect=spec.effect,
        changes=changes(spec.name, spec.effect),
    )
    decision, refusal = _reply(run, site, item)
    if decision == "approved":
        return None
    waits = decision == "waiting"
    ended = refusal if refusal is not None or waits else await foreseen()
    if before and (waits or ended is not None):
        await run.emit(*before)
    if ended is not None:
        return ended
    if waits:
        raise ApprovalPendingError
    if decision == "answered":
        reason = explained(spec)
    version = run.state.plan.version if run.state.plan else 0
    asked = request(
        (item,), reason, plan_version=version, pin=pin_of(run), expires_at=expiry(run), call_id=site.call_id
    )
    await run.emit(*before, Draft(asked, site.step_id, site.attempt))
    raise ApprovalPendingError


def _reply(run: Run, site: CallSite, item: ApprovalItem) -> tuple[str, ToolReturned | None]:
    """What a person last said of this very call: the decision, `waiting` while there is none, empty where they were not
    asked; and what the call ends in by it."""
    found = call_decision(run.state, run.state.step(site.step_id).attempt(site.attempt), site.call_id)
    if found is None or found[0].digest != digest((item,), found[0].plan_version, pin_of(run)):
        return "", None
    asked, decision = found
    if decision == "rejected" or (decision == "answered" and site.by != "rules"):
        return decision, _refused(site, item.tool, run.state.decisions[asked.approval_id])
    return decision or "waiting", None


def _why(run: Run, tool: Tool, site: CallSite, *, tainted: bool) -> str | None:
    """Why a person must allow this call; None when they need not, or allowed the plan it stands in."""
    spec = tool.spec
    if spec.asks and not _seen_in_plan(run, spec.name, site):
        return "whoever runs this gateway wants every call of this tool allowed by a person"
    if not changes(spec.name, spec.effect):
        return None
    if tainted and not _seen_in_plan(run, spec.name, site):
        return "something is to be changed with arguments that come from outside"
    plan = run.state.plan
    of_skill = plan is not None and any(s.id == site.step_id and s.action == "skill" for s in plan.steps)
    if of_skill and run.room.approval != "never":
        return "a skill is to change something"
    return None


def _seen_in_plan(run: Run, tool: str, site: CallSite) -> bool:
    """Whether whoever allowed the plan was shown this very call: nothing in its arguments was filled in since."""
    plan = run.state.plan
    step = next((step for step in (plan.steps if plan else ()) if step.id == site.step_id), None)
    own = step is not None and step.tool == tool and not site.span
    return own and step is not None and not find_references(step.args) and approved(run.state)


def _intent(run: Run, site: CallSite) -> str:
    steps = run.state.plan.steps if run.state.plan else ()
    return next((step.intent for step in steps if step.id == site.step_id), "")


def _refused(site: CallSite, tool: str, decided: ApprovalDecided) -> ToolReturned:
    said = f": {decided.reason}" if decided.reason else ""
    message = f"the user did not allow this call{said}"
    return ToolReturned(call_id=site.call_id, tool=tool, error_code="ERR_TOOL_DENIED", error=message, text=message)
