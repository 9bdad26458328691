"""`RulePlanner`: plans without a model. It knows a few exact commands.

A request is one command, or several joined by "and", "then", commas or new lines. If any part is unknown, no command
runs (`find_unknown_part`): users would take a partial answer for a complete one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.core.errors import ModelUnreachableError
from agent.core.models import JsonObject, Plan, PlanStep, ToolCallRequest
from agent.planning.planned import Planned, Rejection
from agent.planning.request import PlanningRequest
from agent.planning.validate import build_completion, iter_free_ids
from agent.tools import ToolSpec
from agent.tools.commands import ToolCommands

LONGEST_COMMAND = 4_100
"""Characters. A longer text is not a command; a command to remember may be as long as a memory."""
MAX_COMMANDS = 10
_LEAD = re.compile(r"^(?:(?:hi|hello|hey|hej|please|can you|could you|kan du|then|also|and)\b[\s,]*)+", re.IGNORECASE)
_TAIL = re.compile(
    r"(?:(?<![\s,])[\s,]+(?:please|for me|now|tack|\u00e5t mig)[\s?.!=:;,]*|(?<![\s?.!=:;,])[\s?.!=:;,]+)$",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(
    r"(?:(?<!\s)\s*|(?!\s))"  # of a run of spaces only its beginning is tried
    r"(?:[,;]\s*(?:and\s+(?:then\s+)?|then\s+|och\s+)?|\s(?:and|och)\s(?:then\s)?|\sthen\s|[.?!]\s|\n)\s*"
)
_IN_NUMBER = re.compile(r"\d,\d")


@dataclass(frozen=True, slots=True)
class _RuleCall:
    """A tool call of a command."""

    tool: str
    args: JsonObject
    intent: str


class RulePlanner:
    """Plans by rules only; deterministic."""

    def plan(self, request: PlanningRequest, *, has_model: bool = False) -> Plan:
        """A plan with the question's tool calls, all parallel, and a completion if the results need one. An
        incompletely understood question gives no calls.

        A replan repeats no call of an earlier plan."""
        earlier = request.earlier_plans
        completed_steps = [completed.step for completed in earlier.completed.values()]
        made = [(step.tool, step.args) for step in (*earlier.failed, *earlier.happened, *completed_steps)]
        allowed = {spec.name: spec for spec in request.catalogue.tools}
        calls = [call for call in read_calls(request.question, allowed) if (call.tool, call.args) not in made]
        calls = calls[: request.room.budgets.max_steps - 1 or 1]
        used_ids = earlier.used_ids | earlier.completed.keys()
        names = iter_free_ids(used_ids)
        steps = [
            PlanStep(
                id=next(names),
                executor="agent",
                action=allowed[call.tool].step_action,
                tool=call.tool,
                args=call.args,
                intent=call.intent,
                effect=allowed[call.tool].effect,
            )
            for call in calls
        ]
        plan = Plan(goal=request.question[:300], steps=(*completed_steps, *steps), origin="rules")
        if not steps or len(steps) + len(completed_steps) > 1 or request.answer.needs_completion or has_model:
            plan = plan.model_copy(
                update={"steps": (*plan.steps, build_completion((step.id for step in plan.steps), used_ids))}
            )
        return plan.model_copy(update={"version": earlier.next_version})


def plan_by_rules(
    request: PlanningRequest,
    reason: str,
    *,
    has_model: bool = False,
    rejected: tuple[Rejection, ...] = (),
    unreachable: ModelUnreachableError | None = None,
) -> Planned:
    """The rules' plan in place of the planner's, with the reason why the planner made none."""
    plan = RulePlanner().plan(request, has_model=has_model).model_copy(update={"origin_reason": reason})
    return Planned(plan, "llm", "rules", reason, rejected, unreachable=unreachable)


def find_tool_calls(text: str, specs: Iterable[ToolSpec]) -> list[ToolCallRequest]:
    """The calls of these tools that a text asks for, in order; [] unless every part of it is a command."""
    allowed = {spec.name: spec for spec in specs}
    return [ToolCallRequest(tool=call.tool, args=call.args) for call in read_calls(text, allowed)]


def read_calls(text: str, allowed: Mapping[str, ToolSpec]) -> list[_RuleCall]:
    """The calls that a text asks for, in order, without duplicates; [] unless every part of it is a command."""
    commands, unknown = _read_commands(text, allowed)
    return [] if unknown else list({(call.tool, str(call.args)): call for call in commands}.values())


def find_unknown_part(text: str, specs: Iterable[ToolSpec]) -> str:
    """The first part of a request that is not a command; "" if every part is one."""
    return _read_commands(text, {spec.name: spec for spec in specs})[1]


def _read_commands(text: str, allowed: Mapping[str, ToolSpec]) -> tuple[list[_RuleCall], str]:
    """The calls of the text, and its first part that is not a command, or ""."""
    whole_texts = [(tool, commands) for tool, commands in _list_commands(allowed.values()) if commands.takes_whole]
    if whole_texts:
        return _ask_tools(text, whole_texts), ""
    whole = text.strip()
    if len(whole) > LONGEST_COMMAND:
        return [], whole[:LONGEST_COMMAND]
    cuts = [(found.start(), found.end()) for found in _SEPARATOR.finditer(whole)]
    cuts = cuts if len(cuts) < MAX_COMMANDS else []  # a text with this many parts is at most one command
    found = _join_commands(whole, cuts, 0, allowed)
    if found is not None:
        return found, ""
    cuts = [cut for cut in cuts if not _IN_NUMBER.match(whole, cut[0] - 1)]
    begins, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(whole)]
    parts = [whole[begin:end] for begin, end in zip(begins, ends, strict=True)]
    return [], next((part for part in parts if part and not _read_command(part, allowed)), whole)


def _join_commands(
    text: str, cuts: Sequence[tuple[int, int]], begin: int, allowed: Mapping[str, ToolSpec]
) -> list[_RuleCall] | None:
    """The calls of the text from `begin` on, split at some of the cuts; None if no split gives only
    commands.

    Shorter commands come first: "2+2 and 3*4" holds two. "time in Tokyo and Paris" is one: "Paris" is not a command.
    """
    if not text[begin:].strip():
        return None if begin == 0 else []
    for end, after in (*(cut for cut in cuts if cut[0] >= begin), (len(text), len(text))):
        calls = _read_command(text[begin:end], allowed)
        rest = _join_commands(text, cuts, after, allowed) if calls else None
        if rest is not None:
            return [*calls, *rest]
    return None


def _read_command(text: str, allowed: Mapping[str, ToolSpec]) -> list[_RuleCall]:
    """The calls of one command, limited to the allowed tools."""
    return _ask_tools(_TAIL.sub("", _LEAD.sub("", text.strip(), count=1)), _list_commands(allowed.values()))


def _ask_tools(command: str, tools: Iterable[tuple[str, ToolCommands]]) -> list[_RuleCall]:
    """The calls of the first tool whose command it is."""
    for tool, commands in tools:
        calls = commands.read(command) if len(command) <= commands.longest else ()
        if calls:
            return [_RuleCall(tool, call.args, call.intent) for call in calls]
    return []


def _list_commands(specs: Iterable[ToolSpec]) -> list[tuple[str, ToolCommands]]:
    """The names of the tools that have commands, with these, in the order in which they are asked."""
    named = ((spec.name, spec.hints.commands) for spec in specs)
    return sorted(((name, own) for name, own in named if own is not None), key=lambda one: one[1].place)
