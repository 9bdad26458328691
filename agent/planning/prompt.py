"""The planner's prompt: trusted text in the system message, everything else in data blocks of the user message.

The parts that are the same for every request come first, so that endpoints can cache them.
"""

from collections.abc import Sequence

from agent.core.models import ChatMessage, JsonObject
from agent.llm.prompts import format_block, render
from agent.planning.request import PlanningRequest
from agent.planning.validate import format_problems
from agent.tools.catalogue import CatalogueView, shorten
from agent.tools.extracted_fields import EXTRACT

HISTORY_RESULTS = 6
HISTORY_CHARS = 12_000
"""Characters of history in the prompt: the newest messages whole, older ones shortened, the oldest left out."""
MESSAGE_CHARS = 1_000
"""Characters of an older message."""
NEWEST_MESSAGES, NEWEST_CHARS = 4, 4_000
"""A follow-up question refers to the newest messages, so they get more characters."""
SHORTEST_CHARS = 100
"""Characters below which a message is left out in place of being shortened."""
CALL_CHARS = 200
RESULT_CHARS = 2_000
QUESTION_CHARS = 8_000
_REMINDERS = {
    "text": "Reply with the line ANSWER and the answer, or with one JSON object.",
    "empty": "Reply with one JSON object.",
    "none": "Reply with one JSON object.",
}
"""Small models forget the reply format after a long catalogue."""


def list_kinds(request: PlanningRequest, view: CatalogueView) -> list[str]:
    """The kinds of reply that this request allows."""
    kinds = ["answer"] if request.answer.form == "text" else []
    kinds.append("plan")
    if request.may_ask:
        kinds.append("ask")
    if not view.is_whole:
        kinds.append("find_tools")
    return kinds


def build_messages(request: PlanningRequest, view: CatalogueView, *, query: str = "") -> tuple[JsonObject, ...]:
    """The messages of the first call, or of the call after a catalogue search for `query`."""
    operator = "\n\n".join(part for part in (request.room.system_prompt, request.answer.instructions) if part)
    system = render(
        "planner",
        system=f"{operator}\n\n" if operator else "",
        choices=_describe_choices(request, view, searched=bool(query)),
        catalogue=view.text,
        typed_steps=render("planner_typed_steps") + "\n" if EXTRACT in view.names else "",
        max_steps=str(request.room.budgets.max_steps),
    )
    parts = format_context(request)
    earlier = request.earlier_plans
    if earlier.completed:
        done = [f"${c.step.id} ({c.step.tool}): {truncate(c.text, RESULT_CHARS)}" for c in earlier.completed.values()]
        parts.append(format_block("results", "\n".join(done)))
    if earlier.replan_reason is not None:
        parts.append(format_block("replan", truncate(earlier.replan_reason, RESULT_CHARS)))
    parts.append(format_block("user_request", truncate(request.question, QUESTION_CHARS)))
    language = f" Write the answer in {request.answer.language}." if request.answer.language else ""
    parts.append(_REMINDERS[request.answer.form] + language)
    return ({"role": "system", "content": system}, {"role": "user", "content": "\n".join(parts)})


def build_reask(messages: Sequence[JsonObject], reply: str, problems: Sequence[str]) -> tuple[JsonObject, ...]:
    """The messages of the second call, with the unusable reply and its problems."""
    reply_message: JsonObject = {"role": "assistant", "content": truncate(reply, 4_000) or "(nothing)"}
    problem_message: JsonObject = {
        "role": "user",
        "content": render("planner_reask", problems=format_problems(problems)),
    }
    return (*messages[:2], reply_message, problem_message)


def _describe_choices(request: PlanningRequest, view: CatalogueView, *, searched: bool) -> str:
    names = [f"planner_choice_{request.answer.form}"] if request.answer.form != "none" else []
    names.append("planner_choice_plan")
    if request.may_ask:
        names.append("planner_choice_ask")
    if not view.is_whole and not searched:
        names.append("planner_choice_find_tools")
    return "\n".join(map(render, names))


def format_context(request: PlanningRequest) -> list[str]:
    """The data blocks of what is known before the request: the ground, the conversation, memories and results."""
    parts = [format_block("ground", request.ground)] if request.ground else []
    lines = format_history(request)
    if lines:
        parts.append(format_block("history", "\n".join(lines)))
    if request.memories:
        parts.append(format_block("memory", "\n".join(f"- {shorten(m.text, MESSAGE_CHARS)}" for m in request.memories)))
    if request.earlier_results:
        earlier = [f"{one.tool} ({one.intent}): {truncate(one.text, RESULT_CHARS)}" for one in request.earlier_results]
        parts.append(format_block("earlier_results", "\n".join(earlier)))
    return parts


def format_history(request: PlanningRequest) -> list[str]:
    """The newest messages and results of the client's own tools. The last ones get more characters."""
    lines, left_out = _select_history(request.history)
    return [f"[{left_out:,} earlier messages are left out here]", *lines] if left_out else lines


def count_left_out(history: Sequence[ChatMessage]) -> int:
    """How many messages of a conversation the prompt does not hold."""
    return _select_history(history)[1]


def _select_history(history: Sequence[ChatMessage]) -> tuple[list[str], int]:
    """The lines of the messages that fit, and how many messages do not."""
    names: dict[object, str] = {}
    lines: list[tuple[bool, str, str]] = []
    for message in history:
        for call in message.tool_calls:
            function = call.get("function")
            if isinstance(function, dict):
                names[call.get("id")] = (
                    f"{function.get('name', '')}({truncate(str(function.get('arguments')), CALL_CHARS)})"
                )
        if message.role == "tool":
            called = names.get(message.tool_call_id) or message.name or "a tool of the client"
            lines.append((True, f"result of {called}", message.content))
        elif message.role in ("user", "assistant") and message.content:
            lines.append((False, message.role, message.content))
    spoken = [place for place, (is_result, *_) in enumerate(lines) if not is_result]
    returned = [place for place, (is_result, *_) in enumerate(lines) if is_result][-HISTORY_RESULTS:]
    newest = set(spoken[-NEWEST_MESSAGES:])
    left = HISTORY_CHARS
    history_lines: list[str] = []
    for place in sorted((*spoken, *returned), reverse=True):
        _, speaker, text = lines[place]
        if left < min(len(text), SHORTEST_CHARS):
            return history_lines[::-1], sum(one <= place for one in spoken)
        cut = truncate(text, min(max(left, 0), NEWEST_CHARS if place in newest else MESSAGE_CHARS))
        left -= len(cut)
        history_lines.append(f"{speaker}: {cut}")
    return history_lines[::-1], 0


def truncate(text: str, limit: int) -> str:
    """The first characters of a text that is longer than the limit, marked as cut."""
    return text if len(text) <= limit else text[:limit] + " [cut]"
