"""The planner's conversation in rounds: one prefix that only grows, so that an endpoint need not read it again.

The system message holds fixed text and the catalogue, nothing of the request. The conversation follows as messages, the
newest one with the date and what else is known. Each round adds the decision and its results.
"""

import json
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby

from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.llm.prompts import format_block, quote_inline, render
from agent.planning.prompt import QUESTION_CHARS, RESULT_CHARS, format_context, truncate
from agent.planning.request import PlanningRequest, RoundCall
from agent.planning.rounds.decision_schema import LATER, MAX_TOOLS
from agent.text.excerpts import cut_to_excerpt
from agent.tools import ToolSpec
from agent.tools.catalogue import Catalogue, CatalogueIndex, SkillCard, get_first_sentence, is_foreign, shorten
from agent.tools.client_tools import is_from_outside

DESCRIPTION_CHARS, SKILL_CHARS = 160, 110
"""Characters of a tool's and of a skill's description."""
INPUT_CHARS, DESCRIBED_CHARS = 100, 3_000
"""Characters of an input's description, and of all lines of tools of servers and clients up to which their inputs have
one: what a model has not read of a form or a default, it invents."""
SHOWN_INPUTS = 8
"""Names of inputs in a tool's line; the grammar holds their types."""
QUESTION_AGAIN_CHARS = 600
LIST_CHARS, LEAST_CHARS = 6_000, 200
"""Characters of the results of all calls of one list step, and the least of one of them."""
ANSWER: JsonObject = {"next": {"kind": "answer"}}


def choose_tools(catalogue: Catalogue, question: str, query: str = "") -> tuple[ToolSpec, ...]:
    """The tools that the prompt spells out: our own, and of servers' those that match best, in the catalogue's
    order."""
    tools = tuple(spec for spec in catalogue.tools if not spec.hints.is_for_whole_plans)
    if len(tools) <= MAX_TOOLS:
        return tools
    own = [spec for spec in tools if not is_foreign(spec)]
    foreign = [spec for spec in tools if is_foreign(spec)]
    best = catalogue.rank(foreign, question, query)[: max(0, MAX_TOOLS - len(own))]
    chosen = {spec.name for spec in (*own[:MAX_TOOLS], *best)}
    return tuple(spec for spec in tools if spec.name in chosen)


def list_offered(request: PlanningRequest, tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """Those of the tools in the prompt that a decision may call. The prompt names the others, too: its beginning is the
    same for all requests."""
    if not request.checks_answers or request.answer.language:
        return tuple(tools)
    scores = CatalogueIndex([*tools]).compute_scores("\n".join((*request.last_turn, request.question)))
    return tuple(spec for spec in tools if not spec.hints.is_called_by_name or scores.get(spec.name, 0.0) > 0)


def build_round_messages(request: PlanningRequest, tools: Sequence[ToolSpec]) -> tuple[JsonObject, ...]:
    """The conversation up to the next decision."""
    messages: list[JsonObject] = [{"role": "system", "content": _build_system(request, tools)}]
    question = format_block("user_request", truncate(request.question, QUESTION_CHARS))
    messages.append({"role": "user", "content": "\n".join((*format_context(request), question))})
    for _, calls in groupby(request.rounds, key=lambda call: call.number):
        messages += _build_round(request, list(calls))
    if request.rounds or request.earlier_plans.replan_reason is not None:
        messages[-1]["content"] = f"{messages[-1]['content']}\n{build_reminder(request, request.progress.open_parts)}"
    return tuple(messages)


def encode_decision(decision: JsonObject) -> str:
    """A decision as the model writes it: compact JSON."""
    return json.dumps(decision, ensure_ascii=False, separators=(",", ":"))


def _build_system(request: PlanningRequest, tools: Sequence[ToolSpec]) -> str:
    instructions = "\n\n".join(part for part in (request.room.system_prompt, request.answer.instructions) if part)
    skills = [format_skill_line(card) for card in request.catalogue.skills]
    others = [spec for spec in tools if is_from_outside(spec)]
    own = [spec for spec in tools if spec not in others]
    lines = [format_tool_line(spec) for spec in sorted(own, key=lambda spec: spec.hints.source is not None)]
    served = [f"{format_tool_line(spec)}{_describe_inputs(spec)}" for spec in others]
    if sum(map(len, served)) > DESCRIBED_CHARS:
        served = [format_tool_line(spec) for spec in others]
    return render(
        "decide",
        ask=render("decide_ask") + "\n" if request.may_ask else "",
        # What differs between users comes last, tools of their files and of servers: endpoints have cached the rest.
        catalogue="\n".join((*lines, *skills, *served)),
        examples=render("decide_examples"),
        instructions=f"\n\n{instructions}" if instructions else "",
    )


def format_skill_line(card: SkillCard) -> str:
    """One line: the skill's name and what it does. The grammar holds the tools that a call may name for it."""
    return f"- {card.name}(task): {get_first_sentence(card.description, SKILL_CHARS)}"


def format_tool_line(spec: ToolSpec) -> str:
    """One line: the tool's name, the names of its inputs, the first sentence of its description."""
    required = spec.required
    needed = [name for name in spec.properties if name in required]
    names = [*needed, *(f"{name}?" for name in spec.properties if name not in needed)][:SHOWN_INPUTS]
    return f"- {spec.name}({', '.join(names)}): {get_first_sentence(spec.description, DESCRIPTION_CHARS)}"


def _describe_inputs(spec: ToolSpec, names: Collection[str] | None = None) -> str:
    """A line for each input of a tool that its server describes, or for those of `names`: which form of a date it
    takes, what is assumed."""
    chosen = (one for one in [*spec.properties.items()][:SHOWN_INPUTS] if names is None or one[0] in names)
    described = ((name, one.get("description")) for name, one in chosen if isinstance(one, dict))
    return "".join(
        f"\n  {name}: {shorten(text, INPUT_CHARS)}" for name, text in described if isinstance(text, str) and text
    )


def format_inputs(spec: ToolSpec) -> str:
    """A tool with the description of each required input, for a call that the model has to make now."""
    described = {name: spec.get_property(name).get("description") for name in spec.required}
    return "\n".join((f"{spec.name}:", *(f"- {name}: {text}" for name, text in described.items() if text)))


def _build_round(request: PlanningRequest, calls: Sequence[RoundCall]) -> list[JsonObject]:
    parts = [call.part or call.tool for call in calls]
    todo = [*dict.fromkeys((*calls[0].missing, *parts))]
    listed: list[JsonValue] = [
        {"for": todo.index(part) + 1, "tool": call.tool, "inputs": call.args}
        for part, call in zip(parts, calls, strict=True)
    ]
    listed += [{"for": place, "tool": LATER} for place, part in enumerate(todo, start=1) if part not in parts]
    made: JsonObject = {"next": {"kind": "calls", "todo": [*todo], "calls": listed}}
    tools = [call.tool for call in calls]
    listed_calls = Counter(call.list_step for call in calls if call.list_step)
    limits = {name: max(LEAST_CHARS, LIST_CHARS // count) for name, count in listed_calls.items() if count > 1}
    results = [
        format_block(
            "failed" if call.failed else "result",
            _shorten_result(request, call, limits.get(call.list_step, RESULT_CHARS)) + _explain_inputs(request, call),
            tool=call.tool,
            # The call stands above; several of one tool have to be told apart.
            inputs=encode_decision(call.args) if tools.count(call.tool) > 1 else "",
        )
        for call in calls
    ]
    return [
        {"role": "assistant", "content": encode_decision(made)},
        {"role": "user", "content": "\n".join(results)},
    ]


def _explain_inputs(request: PlanningRequest, call: RoundCall) -> str:
    """After the error of somebody else's tool, what it says about the inputs of the call: an error alone seldom says
    which form a date has."""
    spec = request.catalogue.get_tool(call.tool) if call.failed else None
    if spec is None or not is_from_outside(spec):
        return ""
    lines = _describe_inputs(spec, call.args)
    return f"\nInputs of {spec.name}:{lines}" if lines else ""


def _shorten_result(request: PlanningRequest, call: RoundCall, limit: int) -> str:
    """Of a long result, what has to do with the request and the part that the call is for. A search has put first what
    fits."""
    spec = request.catalogue.get_tool(call.tool)
    if call.failed or (spec is not None and spec.hints.is_search):
        return truncate(call.text, limit)
    excerpt = cut_to_excerpt(call.text, limit, f"{request.question}\n{call.part}")
    return f"{excerpt}\n{truncate(call.selected, limit)}" if call.selected else excerpt


def build_reminder(request: PlanningRequest, parts: Sequence[str]) -> str:
    """The end of the newest message, after all results: why the plan changes, the request once more, and the
    next of its open parts."""
    reason = request.earlier_plans.replan_reason
    failed = any(call.failed for call in request.rounds)
    note = format_block("replan", truncate(reason, RESULT_CHARS)) + "\n" if reason is not None and not failed else ""
    question = truncate(request.question, QUESTION_AGAIN_CHARS)
    if request.progress.may_call and parts:
        return note + render("decide_part", request=question, part=quote_inline(parts[0]))
    return note + render("decide_next" if request.progress.may_call else "decide_last", request=question)


def say(role: str, content: str) -> JsonObject:
    """A message of the conversation."""
    return {"role": role, "content": content}
