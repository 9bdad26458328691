"""Decides when a person must approve a run, and what they are shown. Pure, except for random approval ids.

A plan is approved as a whole. Two kinds of calls are approved one by one: those that a skill's model makes up, and
those whose arguments come from an untrusted source.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping

from agent.core.events import ApprovalItem, ApprovalRequested
from agent.core.models import ArgumentRole, JsonObject, PlanStep
from agent.core.run_state import AttemptState, RunState
from agent.policy.effect_arguments import ROLE_ORDER, find_asked_args
from agent.policy.plain_text import escape_markdown, format_literal, remove_live_parts

APPROVAL_ID_BYTES = 16
"""Random bytes of an approval's id: who has not read it cannot name it (128 bits, as a UUID)."""
MAX_ARG_CHARS = 2_000
"""Longest argument in a message, in characters. The event has the whole."""
APPROVE_WORDS = frozenset({"approve", "approved", "yes", "ok", "okay", "godkänn", "ja"})
REJECT_WORDS = frozenset({"reject", "rejected", "no", "avslå", "nej"})

OWN_SOURCE = "from your request"
"""The source of an argument whose value stands in the user's words."""
CONFIRMED_SOURCE = "you confirmed it before"
TRUSTED_SOURCES = frozenset({OWN_SOURCE, CONFIRMED_SOURCE})
_MARKS: Mapping[ArgumentRole, str] = {"where": "⚠ **where it goes**: ", "amount": "⚠ **how much**: "}
"""What stands before an argument from outside that decides where something goes, or how much."""

ToolFingerprint = Callable[[str], JsonObject]
"""Returns the description of a tool by its name. An approval is void if the description changes."""


def find_approval_reason(state: RunState) -> str | None:
    """Returns why the current plan needs approval before it runs, or None if it does not or was approved."""
    plan = state.plan
    if plan is None or is_plan_approved(state):
        return None
    pending = [step for step in plan.steps if state.get_step(step.id).status != "succeeded"]
    changing = [step for step in pending if step.action != "skill" and state.has_side_effect(step.tool, step.effect)]
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
        return "the plan was made after untrusted text was read, and it changes something"
    if policy == "side_effects" and changes_several(state):
        return "the message asks for several things, and this changes something"
    if changing and policy == "side_effects" and not _are_calls_named_by_request(state):
        return "the plan changes something"
    return None


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
    if not state.decisions:
        return False
    version = state.plan.version if state.plan else 0
    asked = {one.approval_id for one in state.approvals if one.call_id is None}
    return any(
        decided.decision == "approved" and decided.plan_version == version and decided.approval_id in asked
        for decided in state.decisions.values()
    )


def is_plan_awaiting_approval(state: RunState) -> bool:
    """Whether the current plan has an open approval request."""
    return any(asked.call_id is None for asked in state.pending_approvals)


def get_plan_feedback(state: RunState) -> str:
    """Returns what a person replied to the plan's approval request if it was neither yes nor no, else ""."""
    if not state.approvals:
        return ""
    version = state.plan.version if state.plan else 0
    said = ""
    for asked in state.approvals:
        decided = state.decisions.get(asked.approval_id)
        if asked.call_id is None and asked.plan_version == version and decided and decided.decision == "answered":
            said = decided.reason
    return said


def list_plan_items(state: RunState) -> tuple[ApprovalItem, ...]:
    """The unfinished steps of the current plan, without completions: writing the answer needs no approval."""
    steps = state.plan.steps if state.plan else ()
    pending = (step for step in steps if state.get_step(step.id).status != "succeeded")
    items = tuple(_build_item(state, step) for step in pending if step.is_work)
    if not changes_several(state) or state.classified is None:
        return items
    changing = {steps[at].id for at in state.classified.changing if at < len(steps)}
    return tuple(item.model_copy(update={"changes": True}) if item.step_id in changing else item for item in items)


def build_approval_request(
    items: tuple[ApprovalItem, ...],
    reason: str,
    *,
    plan_version: int,
    pin: ToolFingerprint,
    expires_at: float,
    call_id: str | None = None,
) -> ApprovalRequested:
    """Builds an approval request, bound by its digest to the items, the plan's version and the tools' descriptions."""
    return ApprovalRequested(
        approval_id=f"apr_{secrets.token_hex(APPROVAL_ID_BYTES)}",
        digest=compute_digest(items, plan_version, pin),
        plan_version=plan_version,
        reason=reason,
        items=items,
        call_id=call_id,
        expires_at=expires_at,
    )


def compute_digest(items: Iterable[ApprovalItem], plan_version: int, pin: ToolFingerprint) -> str:
    """The SHA-256 (hex) of the items, the plan's version and the current descriptions of the tools."""
    items = tuple(items)
    content = {
        "version": plan_version,
        "items": [
            item.model_dump(mode="json", exclude={"sources", "roles", "shown", "shown_sha256"}) for item in items
        ],
        "tools": {name: pin(name) for name in sorted({item.tool for item in items})},
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def get_call_decision(
    state: RunState, attempt: AttemptState | None, call_id: str
) -> tuple[ApprovalRequested, str] | None:
    """The newest request about this call with its decision (empty while open), or None without a request."""
    if attempt is None:
        return None
    asked = next((asked for asked in reversed(state.approvals) if asked.call_id == call_id), None)
    if asked is None:
        return None
    decided = state.decisions.get(asked.approval_id)
    return asked, decided.decision if decided else ""


def parse_decision(text: str) -> tuple[str, str]:
    """Parses a person's reply into (`approved`, ""), (`rejected`, reason) or (`answered`, text).

    Only a single word or the commands `/approve` and `/reject REASON` decide. A word within a sentence does not: "do
    not do it" contains "do it".
    """
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


def format_approval_question(state: RunState) -> str:
    """Formats the open approval requests as Markdown; empty if the run waits for nobody."""
    waiting = state.pending_approvals
    return format_question(waiting, state.run_id) if waiting else ""


def format_question(waiting: tuple[ApprovalRequested, ...], run_id: str, *, names_ids: bool = True) -> str:
    """Formats approval requests of one run as Markdown. Their ids stand in the last line: a reply that carries them
    shows that the caller has read the question. A page with buttons needs no such line.
    """
    whole = waiting[0].call_id is None
    lines = [f"**Approval needed**: {_end_with_period(remove_live_parts(waiting[0].reason))}", ""]
    items = [item for asked in waiting for item in asked.items]
    for number, item in enumerate(items, start=1):
        mark = " — *changes something*" if item.changes else ""
        intent = f": {escape_markdown(item.intent)}" if item.intent else ""
        lines.append(f"{number}. {format_literal(item.tool)}{mark}{intent}")
        lines += [_format_argument(item, name) for name in _sort_arguments(item)]
        lines += ["", item.shown, ""] if item.shown else []
    if not whole:
        lines += ["", "With `approve` the call is made; with `reject` it is not, and the run goes on without it."]
    if not names_ids:
        return "\n".join(lines)
    other = "Any other reply changes the plan." if whole else "Any other reply goes to the agent."
    ids = ", ".join(f"`{name}`" for name in (*(asked.approval_id for asked in waiting), run_id))
    lines += ["", f"Reply `approve` or `reject`. {other} ({ids})"]
    return "\n".join(lines)


def _sort_arguments(item: ApprovalItem) -> list[str]:
    """The names of the arguments: those whose value is not the user's first, by what a wrong one does."""

    def rank(name: str) -> tuple[bool, int]:
        role = item.roles.get(name)
        return not _is_from_outside(item, name), ROLE_ORDER.index(role) if role is not None else 0

    return sorted(item.args, key=rank)


def _is_from_outside(item: ApprovalItem, name: str) -> bool:
    return item.sources.get(name, OWN_SOURCE) not in TRUSTED_SOURCES


def _format_argument(item: ApprovalItem, name: str) -> str:
    source = item.sources.get(name, "")
    if not source or not _is_from_outside(item, name):
        return f"   - {escape_markdown(name)}{f' ({source})' if source else ''}: {format_value(item.args[name])}"
    mark = _MARKS.get(item.roles.get(name, "other"), "")
    return f"   - {mark}{escape_markdown(name)} — **{source}**: {format_value(item.args[name])}"


def format_value(value: object) -> str:
    """Formats a value of a question as Markdown that it cannot break out of; a long one is cut, with its length."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= MAX_ARG_CHARS else f"{text[:MAX_ARG_CHARS]}… ({len(text):,} characters)"
    if len(text.splitlines()) > 1 or "`" in text:  # each of them can end inline code
        fence = "`" * (max((len(run) for run in _find_backtick_runs(text)), default=0) + 3)
        body = "\n".join(f"     {line}" for line in text.splitlines())
        return f"\n     {fence}\n{body}\n     {fence}"
    return f"`{text}`" if text else "*(empty)*"


def _are_calls_named_by_request(state: RunState) -> bool:
    """Whether a caller who may approve named exactly these calls with their arguments, which counts as
    approval.
    """
    route = state.understanding.route if state.understanding else "plan"
    return state.may_skip_approval and route == "tool_calls" and state.plans[-1].plan.version == 0


def _build_item(state: RunState, step: PlanStep) -> ApprovalItem:
    return ApprovalItem(
        step_id=step.id,
        tool=step.tool,
        args=step.args,
        intent=step.intent,
        effect=step.effect,
        changes=state.has_side_effect(step.tool, step.effect),
    )


def _find_backtick_runs(text: str) -> list[str]:
    return "".join(char if char == "`" else " " for char in text).split()


def _end_with_period(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
