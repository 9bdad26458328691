"""Formats approval requests as the Markdown that a person is shown."""

import re
import time
from collections.abc import Mapping, Sequence
from typing import Final

from agent.core.events import ApprovalItem, ApprovalRequested
from agent.core.json_texts import write_text
from agent.core.models import ArgumentRole
from agent.core.plan_references import ITEM, describe_references
from agent.core.run_state import RunState
from agent.policy.approval.effect_arguments import ROLE_ORDER
from agent.policy.approval.outgoing import format_outgoing
from agent.policy.guardrails.plain_text import escape_markdown, format_literal, remove_live_parts, show_unseen

MAX_ARG_CHARS, MAX_PLACE_CHARS = 2_000, 20_000
"""Longest argument in a message, in characters, and longest place or amount: a person must see all of where something
goes. The event has the whole."""
END_CHARS = 500
"""Characters of the end of a longer one that are shown."""

APPROVAL_PREFIX: Final = "apr_"
_ID = re.compile(rf"{APPROVAL_PREFIX}[0-9a-f]{{32}}|run_[0-9a-f]{{32}}")
_REFERENCE = re.compile(rf"\((?:`?{APPROVAL_PREFIX}[0-9a-f]{{32}}`?, )+`?run_[0-9a-f]{{32}}`?\)")
"""The ids of a question, as `format_reference` writes them; some clients remove the marks of code."""
OWN_SOURCE = "from your request"
"""The source of an argument whose value the user's words contain."""
CONFIRMED_SOURCE = "you confirmed it before"
TRUSTED_SOURCES = frozenset({OWN_SOURCE, CONFIRMED_SOURCE})
_MARKS: Mapping[ArgumentRole, str] = {"where": "⚠ **where it goes**: ", "amount": "⚠ **how much**: "}
"""What stands before an argument from outside that decides where something goes, or how much."""


def format_approval_question(state: RunState) -> str:
    """Formats the open approval requests as Markdown; empty if the run waits for nobody."""
    waiting = state.pending_approvals
    return format_question(waiting, state.run_id) if waiting else ""


def format_question(waiting: tuple[ApprovalRequested, ...], run_id: str, *, names_ids: bool = True) -> str:
    """Formats approval requests of one run as Markdown. Their ids are in the last line: a reply that carries them shows
    that the caller has read the question. A page with buttons needs no such line.
    """
    whole = waiting[0].call_id is None
    reasons = dict.fromkeys(remove_live_parts(request.reason) for request in waiting)
    lines = [f"**Approval needed**: {' '.join(map(_end_with_period, reasons))}", ""]
    items = [item for request in waiting for item in describe_items(request)]
    if outgoing := format_outgoing(items):
        lines += [*(f"{line}  " for line in outgoing), ""]
    for number, item in enumerate(items, start=1):
        mark = " — *changes something*" if item.changes else _describe_read(item)
        intent = f": {escape_markdown(item.intent)}" if item.intent else ""
        lines.append(f"{number}. {format_literal(item.tool)}{mark}{intent}")
        lines += [_format_argument(item, name) for name in _sort_arguments(item)]
        lines += ["", item.shown, ""] if item.shown else []
    if not whole:
        lines += ["", "With `approve` the call is made; with `reject` it is not, and the run goes on without it."]
    if not names_ids:
        return "\n".join(lines)
    other = "Any other reply changes the plan." if whole else "Any other reply goes to the agent."
    reference = format_reference([request.approval_id for request in waiting], run_id)
    lines += ["", f"Reply `approve` or `reject`. {other} {reference}"]
    return "\n".join(lines)


def _describe_read(item: ApprovalItem) -> str:
    """The mark of a read of a server that is not trusted; "" for others."""
    if not item.read_claim:
        return ""
    covered = "a yes covers its further reads here, but for private words from elsewhere"
    return f" — *reads from {escape_markdown(item.read_claim)}, which is not trusted; {covered}*"


def describe_items(request: ApprovalRequested) -> list[ApprovalItem]:
    """What a request asks about, with the references between the steps of a plan in words.

    The arguments of a single call are values: nothing in them is a reference.
    """
    if request.call_id is not None:
        return list(request.items)
    names = {item.step_id: f"the result of step {number} ({item.tool})" for number, item in enumerate(request.items, 1)}
    names[ITEM] = "each entry of the list"
    return [
        item.model_copy(
            update={
                "args": {
                    name: describe_references(value, names, "the result of an earlier step")
                    for name, value in item.args.items()
                }
            }
        )
        for item in request.items
    ]


def format_reference(approval_ids: Sequence[str], run_id: str) -> str:
    """The ids at the end of a question. `parse_reference` reads them when a client sends the question back."""
    ids = ", ".join(f"`{name}`" for name in (*approval_ids, run_id))
    return f"({ids})"


def parse_reference(text: str) -> tuple[tuple[str, ...], str] | None:
    """The approval ids and the run id of the last question in a text; None if the text quotes no question.

    The words of a question may be in another language or form by then; its ids are what a decision needs.
    """
    references = _REFERENCE.findall(text)
    if not references:
        return None
    *approval_ids, run_id = _ID.findall(references[-1])
    return tuple(approval_ids), run_id


def format_named_approval(state: RunState) -> str:
    """The reply that approves what a run waits for, with its ids; empty if a bare `approve` says enough.

    A yes that is sent twice would answer the next question too, so after the first one a yes must name what it is for.
    """
    waiting = state.list_open_approvals(time.time())
    if not waiting or all(decided.decision != "approved" for decided in state.decisions.values()):
        return ""
    return " ".join(("approve", *(request.approval_id for request in waiting)))


def split_approval_ids(text: str) -> tuple[str, tuple[str, ...]]:
    """A decision's words, and the approval ids that it names: `approve apr_...`. Text that holds more than ids after
    its first word, such as a question that is quoted, is not taken apart.
    """
    word, *named = text.replace("`", " ").replace(",", " ").split() or [""]
    is_decision = bool(named) and all(name.startswith(APPROVAL_PREFIX) and _ID.fullmatch(name) for name in named)
    return (word, tuple(named)) if is_decision else (text, ())


def _sort_arguments(item: ApprovalItem) -> list[str]:
    """The names of the arguments: those whose value is not the user's first, by what a wrong one does."""

    def rank(name: str) -> tuple[bool, int]:
        role = item.roles.get(name)
        return not is_from_outside(item, name), ROLE_ORDER.index(role) if role is not None else 0

    return sorted(item.args, key=rank)


def is_from_outside(item: ApprovalItem, name: str) -> bool:
    """Whether the question says of an argument that its value is not the person's."""
    return item.sources.get(name, OWN_SOURCE) not in TRUSTED_SOURCES


def _format_argument(item: ApprovalItem, name: str) -> str:
    source, role = item.sources.get(name, ""), item.roles.get(name, "other")
    value = format_value(item.args[name], MAX_ARG_CHARS if role == "content" else MAX_PLACE_CHARS)
    if not source or not is_from_outside(item, name):
        return f"   - {escape_markdown(name)}{f' ({source})' if source else ''}: {value}"
    return f"   - {_MARKS.get(role, '')}{escape_markdown(name)} — **{source}**: {value}"


def format_value(value: object, max_chars: int | None = MAX_ARG_CHARS) -> str:
    """Formats a value of a question as Markdown that it cannot break out of. A longer one than `max_chars` is shown by
    its beginning and end, with its length."""
    text = show_unseen(write_text(value))
    if max_chars is not None and len(text) > max_chars:
        text = f"{text[: max_chars - END_CHARS]} … {text[-END_CHARS:]} ({len(text):,} characters)"
    if len(text.splitlines()) > 1 or "`" in text:  # each of them can end inline code
        fence = "`" * (max((len(run) for run in _find_backtick_runs(text)), default=0) + 3)
        body = "\n".join(f"     {line}" for line in text.splitlines())
        return f"\n     {fence}\n{body}\n     {fence}"
    return f"`{text}`" if text else "*(empty)*"


def _find_backtick_runs(text: str) -> list[str]:
    return "".join(char if char == "`" else " " for char in text).split()


def _end_with_period(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
