"""When a person is asked before a run goes on, and what they are shown. Pure, but for the random part of an id.

A plan is asked about as a whole. What only shows while it is carried out is asked about call by call: a call that a
skill's model came up with, and one whose arguments come from outside.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable

from agent.core.events import ApprovalItem, ApprovalRequested
from agent.core.fold import AttemptState, RunState
from agent.core.models import Effect, JsonObject, PlanStep

ARGS_CHARS = 2_000
"""How much of one argument a person is shown in a message; the whole stands in the event."""
APPROVE_WORDS = frozenset({"approve", "approved", "yes", "ok", "okay", "godkänn", "ja"})
REJECT_WORDS = frozenset({"reject", "rejected", "no", "avslå", "nej"})
OWN_MEMORY = frozenset({"memory_save", "memory_search"})
"""Our own tools for what the user wants remembered, in full: `memory__send` may be anybody's."""

Pin = Callable[[str], JsonObject]
"""What is known of a tool by its name, as a person was shown it: another description is another tool."""


def changes(tool: str, effect: Effect) -> bool:
    """Whether a step or call changes something outside the agent. What it remembers for the user is its own."""
    return effect != "read" and tool not in OWN_MEMORY


def asks(state: RunState) -> str | None:
    """Why the plan in force must be allowed before it is carried out; None when it may be, or was."""
    plan = state.plan
    if plan is None or approved(state):
        return None
    pending = [step for step in plan.steps if state.step(step.id).status != "succeeded"]
    changing = [step for step in pending if step.action != "skill" and changes(step.tool, step.effect)]
    policy = state.room.approval
    if any(not step.is_completion for step in pending):
        if policy == "always":
            return "this room asks before every plan"
        if state.request.metadata.get("approve_plan") is True:
            return "the request wants its plan approved"
    if changing and state.plans[-1].tainted:
        return "the plan was made after text from outside had been read, and changes something"
    if changing and policy == "side_effects" and not _asked_for_by_name(state):
        return "the plan changes something"
    return None


def approved(state: RunState) -> bool:
    """Whether a person has allowed the plan in force."""
    version = state.plan.version if state.plan else 0
    asked = {one.approval_id for one in state.approvals if one.call_id is None}
    return any(
        decided.decision == "approved" and decided.plan_version == version and decided.approval_id in asked
        for decided in state.decisions.values()
    )


def waits(state: RunState) -> bool:
    """Whether the plan in force has been asked about and not decided on."""
    return any(asked.call_id is None for asked in state.waiting)


def said_of_plan(state: RunState) -> str:
    """What a person said when they were asked about the plan in force, where that was neither yes nor no."""
    version = state.plan.version if state.plan else 0
    said = ""
    for asked in state.approvals:
        decided = state.decisions.get(asked.approval_id)
        if asked.call_id is None and asked.plan_version == version and decided and decided.decision == "answered":
            said = decided.reason
    return said


def plan_items(state: RunState) -> tuple[ApprovalItem, ...]:
    """What the plan in force is still to do, but for writing the answer, which there is nothing to allow about."""
    steps = state.plan.steps if state.plan else ()
    pending = (step for step in steps if state.step(step.id).status != "succeeded")
    return tuple(_item(step) for step in pending if not step.is_completion)


def request(
    items: tuple[ApprovalItem, ...],
    reason: str,
    *,
    plan_version: int,
    pin: Pin,
    expires_at: float,
    call_id: str | None = None,
) -> ApprovalRequested:
    """The question to the person, bound to what it is about."""
    return ApprovalRequested(
        approval_id=f"apr_{secrets.token_hex(8)}",
        digest=digest(items, plan_version, pin),
        plan_version=plan_version,
        reason=reason,
        items=items,
        call_id=call_id,
        expires_at=expires_at,
    )


def digest(items: Iterable[ApprovalItem], plan_version: int, pin: Pin) -> str:
    """SHA-256 (hex) over the items, their plan's version and the tools as they are now."""
    items = tuple(items)
    content = {
        "version": plan_version,
        "items": [item.model_dump(mode="json") for item in items],
        "tools": {name: pin(name) for name in sorted({item.tool for item in items})},
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def call_decision(state: RunState, attempt: AttemptState | None, call_id: str) -> tuple[ApprovalRequested, str] | None:
    """The newest request about this call, and its decision; empty while there is none."""
    if attempt is None:
        return None
    asked = next((asked for asked in reversed(state.approvals) if asked.call_id == call_id), None)
    if asked is None:
        return None
    decided = state.decisions.get(asked.approval_id)
    return asked, decided.decision if decided else ""


def decision_of(text: str) -> tuple[str, str]:
    """What a person's reply decides: `approved`, `rejected` (and why) or `answered` (with what they said).

    One word, or `/approve` and `/reject why`; never a word within a sentence ("do not do it" holds "do it")."""
    said = text.strip()
    command, _, rest = said.partition(" ")
    if command.lower() == "/approve" and not rest.strip():
        return "approved", ""
    if command.lower() == "/reject":
        return "rejected", rest.strip()
    word = said.strip(" .!\n\t").casefold()
    if word in APPROVE_WORDS:
        return "approved", ""
    if word in REJECT_WORDS:
        return "rejected", ""
    return "answered", said


def question(state: RunState) -> str:
    """What a person is asked, as Markdown; empty when the run waits for nobody."""
    waiting = state.waiting
    if not waiting:
        return ""
    whole = waiting[0].call_id is None
    lines = [f"**Approval needed**: {_sentence(waiting[0].reason)}", ""]
    items = [item for asked in waiting for item in asked.items]
    for number, item in enumerate(items, start=1):
        mark = " — *changes something*" if item.changes else ""
        lines.append(f"{number}. `{item.tool}`{mark}{': ' + item.intent if item.intent else ''}")
        lines += [f"   - {name}: {_shown(value)}" for name, value in item.args.items()]
    other = "Anything else is taken as a change of the plan." if whole else "Anything else is told to the agent."
    lines += ["", f"Reply `approve` or `reject`. {other} (`{state.run_id}`)"]
    return "\n".join(lines)


def _asked_for_by_name(state: RunState) -> bool:
    """Whether the caller named these very calls with their arguments: then they have said what they want."""
    route = state.understood.route if state.understood else "plan"
    return route == "tool_calls" and state.plans[-1].plan.version == 0


def _item(step: PlanStep) -> ApprovalItem:
    return ApprovalItem(
        step_id=step.id,
        tool=step.tool,
        args=step.args,
        intent=step.intent,
        effect=step.effect,
        changes=changes(step.tool, step.effect),
    )


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= ARGS_CHARS else f"{text[:ARGS_CHARS]}… ({len(text):,} characters)"
    if "\n" in text or "`" in text:
        fence = "`" * (max((len(run) for run in _backticks(text)), default=0) + 3)
        body = "\n".join(f"     {line}" for line in text.splitlines())
        return f"\n     {fence}\n{body}\n     {fence}"
    return f"`{text}`" if text else "*(empty)*"


def _backticks(text: str) -> list[str]:
    return "".join(char if char == "`" else " " for char in text).split()


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
