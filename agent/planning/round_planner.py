"""`RoundPlanner`: decides on one batch of calls, a question or the answer, with all earlier results in view.

The reply is bound to a JSON schema whose inputs each tool types. A round is a plan whose last step is `plan_more`; an
answer is a plan of one completion, which continues the same conversation. An answer that was chosen before any call is
questioned once: small models answer from memory what a tool would tell them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from agent.core.errors import ModelError, ModelUnreachableError, PlanInvalidError
from agent.core.models import JsonObject, PlanStep
from agent.llm.port import ModelReply
from agent.planning.decision_schema import MAX_TOOLS, NOTHING, build_choice_schema, build_decision_schema, expand_more
from agent.planning.parse import parse_reply, parse_strict, strip_thinking
from agent.planning.planned import Planned, Rejection
from agent.planning.planner import PlannerModel, append_new_steps, build_completion_plan, build_plan_steps
from agent.planning.reply import Answer, Ask, FindTools, PlanReply, Reply, read_reply
from agent.planning.request import PlanningRequest, RoundResult
from agent.planning.round_prompt import ANSWER, build_round_messages, choose_tools, encode_decision
from agent.planning.rules import RulePlanner
from agent.planning.validate import format_problems
from agent.policy.approval import has_side_effect
from agent.prompts import render
from agent.tools import ToolSpec

MAX_CALLS = 8
"""Calls in one round."""
NO_TOOL = "none"
PLAN_MORE = "plan_more"
_NOTHING = frozenset({"", NO_TOOL, NOTHING})
"""What a model writes as missing when all is there, also if it adds a call that nobody asked for."""


@dataclass
class _Attempt:
    """The state of one decision: the messages so far, what may be chosen, and what was refused."""

    messages: tuple[JsonObject, ...]
    tools: tuple[ToolSpec, ...]
    is_questioned: bool
    must_call: bool = False
    searched: bool = False
    rejected: list[Rejection] = field(default_factory=list)


class RoundPlanner:
    """Plans in rounds with a model. Falls back to rules if no first decision can be had."""

    def __init__(self, model: PlannerModel, *, has_writer: bool = True) -> None:
        self._model = model
        self._has_writer = has_writer

    async def plan(self, request: PlanningRequest) -> Planned:
        """Returns a round, an answer or a question. Raises no `ModelError`: on a failure the rules plan."""
        tools = choose_tools(request.catalogue, request.question)
        attempt = _Attempt(build_round_messages(request, tools), tools, is_questioned=not request.checks_answers)
        if not request.may_call:
            return self._build_answer(request, attempt)
        try:
            planned = await self._decide(request, attempt)
        except ModelError as error:
            unreachable = error if isinstance(error, ModelUnreachableError) else None
            return self._plan_by_rules(request, attempt, error.message, unreachable)
        if planned is None and request.rounds:  # the results so far are the best there is
            planned = self._build_answer(request, attempt)
        if planned is None:
            reason = f"the model gave no valid plan: {attempt.rejected[-1].problems[0]}"
            return self._plan_by_rules(request, attempt, reason, None)
        return replace(planned, rejected=tuple(attempt.rejected)) if attempt.rejected else planned

    async def _decide(self, request: PlanningRequest, attempt: _Attempt) -> Planned | None:
        """Asks until there is a usable decision; None after two unusable ones. Raises `ModelError`."""
        while True:
            kinds = _list_kinds(request, attempt)
            schema = build_decision_schema(attempt.tools, request.catalogue.skills, kinds, MAX_CALLS)
            reply = await self._model.ask(attempt.messages, schema)
            try:
                meant = read_decision(reply)
                if isinstance(meant, Answer):
                    if await self._is_answer_earned(request, attempt):
                        return self._build_answer(request, attempt)
                elif isinstance(meant, FindTools):
                    _search_tools(request, attempt, meant.query)
                else:
                    return self._build_planned(request, meant)
            except PlanInvalidError as error:
                attempt.rejected.append(Rejection(tuple(error.problems), reply.text[:500]))
                if len(attempt.rejected) > 1:
                    return None
                if isinstance(error, RepeatedCallError):
                    attempt.tools = tuple(spec for spec in attempt.tools if spec.name != error.tool)
                _add_turn(attempt, reply.text, render("planner_reask", problems=format_problems(error.problems)))

    async def _is_answer_earned(self, request: PlanningRequest, attempt: _Attempt) -> bool:
        """Returns whether the answer may be written now. If a tool is needed first, the next decision must call."""
        names = [*(card.name for card in request.catalogue.skills), *(spec.name for spec in attempt.tools)]
        if attempt.must_call:
            raise PlanInvalidError(["a tool is needed; call it"])
        if attempt.is_questioned or request.rounds or not names:
            return True
        attempt.is_questioned = True
        asked = (*attempt.messages, _say("assistant", encode_decision(ANSWER)), _say("user", render("decide_check")))
        reply = await self._model.ask(asked, build_choice_schema([*names, NO_TOOL]))
        chosen = _read_choice(reply)
        if chosen not in names:
            return True
        attempt.messages = (*asked, _say("assistant", encode_decision({"tool": chosen})))
        attempt.messages = (*attempt.messages, _say("user", render("decide_again", tool=chosen)))
        attempt.must_call = True
        return False

    def _build_planned(self, request: PlanningRequest, meant: Ask | PlanReply) -> Planned:
        if isinstance(meant, Ask):
            if not request.may_ask:
                raise PlanInvalidError(["nobody is there to answer a question; go on with what is known"])
            return Planned(build_completion_plan(request, None), "llm", "llm", question=meant.question)
        notes: list[str] = []
        _check_repetition(meant.data, request.rounds)
        made = build_plan_steps(meant.data, request, notes=notes)
        steps = _defer_effects(made.steps, notes)
        plan = made.model_copy(update={"steps": (*steps, _build_plan_more(request, steps))})
        return Planned(append_new_steps(plan, request), "llm", "llm", adjusted=tuple(notes))

    def _build_answer(self, request: PlanningRequest, attempt: _Attempt) -> Planned:
        messages = (*attempt.messages, _say("assistant", encode_decision(ANSWER)))
        return Planned(build_completion_plan(request, None), "llm", "llm", messages=messages)

    def _plan_by_rules(
        self, request: PlanningRequest, attempt: _Attempt, reason: str, unreachable: ModelUnreachableError | None
    ) -> Planned:
        ruled = RulePlanner().plan(request, has_model=self._has_writer).model_copy(update={"origin_reason": reason})
        return Planned(ruled, "llm", "rules", reason, tuple(attempt.rejected), unreachable=unreachable)


def read_decision(reply: ModelReply) -> Reply:
    """Returns what a reply decides. Raises `PlanInvalidError` if it is cut off or unusable.

    Endpoints that ignore the schema get the leniency of `read_reply`: a plan, a question or an answer in other forms.
    """
    if reply.refused:
        return Answer(reply.text)
    whole = parse_strict(strip_thinking(reply.text))
    decided = whole.get("next") if isinstance(whole, dict) else None
    if decided is None and '"next"' in reply.text:
        decided = parse_reply(reply.text, reply.finish_reason).get("next")
    if not isinstance(decided, dict):
        return read_reply(reply.text, reply.finish_reason)
    match decided:
        case {"kind": "ask", "question": str(question)} if question.strip():
            return Ask(question.strip())
        case {"kind": "find_tools", "query": str(query)} if query.strip():
            return FindTools(query.strip())
        case {"kind": "answer"}:
            return Answer("")
        case {"missing": str(missing), "calls": [*_]} if missing.strip().lower() in _NOTHING:
            return Answer("")
        case {"calls": [*_]}:
            return PlanReply({"reasoning": decided.get("missing"), "steps": [*map(_expand_call, decided["calls"])]})
    raise PlanInvalidError(['"next" holds neither calls, nor a question, nor an answer'])


def _expand_call(call: JsonValue) -> JsonValue:
    inputs = call.get("inputs") if isinstance(call, dict) else None
    return {**call, "inputs": expand_more(inputs)} if isinstance(call, dict) and isinstance(inputs, dict) else call


def _list_kinds(request: PlanningRequest, attempt: _Attempt) -> list[str]:
    if attempt.must_call:
        return ["calls"]
    kinds = ["calls"]
    if len(request.catalogue.tools) > MAX_TOOLS and not attempt.searched:
        kinds.append("find_tools")
    if request.may_ask:
        kinds.append("ask")
    return [*kinds, "answer"]


def _search_tools(request: PlanningRequest, attempt: _Attempt, query: str) -> None:
    if attempt.searched:
        raise PlanInvalidError(["no further tools can be searched; go on with those above"])
    attempt.searched = True
    attempt.tools = choose_tools(request.catalogue, request.question, query)
    attempt.messages = build_round_messages(request, attempt.tools)


def _read_choice(reply: ModelReply) -> str:
    whole = parse_strict(strip_thinking(reply.text))
    return str(whole.get("tool")) if isinstance(whole, dict) else ""


def _check_repetition(data: JsonObject, rounds: Sequence[RoundResult]) -> None:
    """Raises `RepeatedCallError` if every call of a decision was made before with the same inputs."""
    steps = data.get("steps")
    calls = steps if isinstance(steps, list) else []
    known = [next((one for one in rounds if _is_same(call, one)), None) for call in calls if isinstance(call, dict)]
    call = known[0] if known else None
    if call is None or None in known:
        return
    told = "failed with these inputs" if call.failed else "was called with these inputs already; its result is above"
    raise RepeatedCallError(call.tool, f"{call.tool} {told}. Call another tool for what is missing, or answer")


def _is_same(call: Mapping[str, JsonValue], made: RoundResult) -> bool:
    return (call.get("tool"), call.get("inputs")) == (made.tool, made.args)


class RepeatedCallError(PlanInvalidError):
    """Raised for a decision that makes an earlier call again. The tool is no choice in the next reply: a small model
    would choose it again."""

    def __init__(self, tool: str, problem: str) -> None:
        super().__init__([problem])
        self.tool = tool


def _defer_effects(steps: Sequence[PlanStep], notes: list[str]) -> tuple[PlanStep, ...]:
    """Returns the steps of a round without changes beside calls that read: the planner sees what was read first."""
    changing = [step for step in steps if has_side_effect(step.tool, step.effect)]
    if not changing or len(changing) == len(steps):
        return tuple(steps)
    notes += [f"{step.tool} waits until the results of this round are known" for step in changing]
    names = {step.id for step in changing}
    return tuple(step for step in steps if step.id not in names and not names & set(step.depends_on))


def _build_plan_more(request: PlanningRequest, steps: Sequence[PlanStep]) -> PlanStep:
    taken = request.used_ids | {step.id for step in steps}
    name = next(name for name in (f"more{number}" for number in range(1, 100)) if name not in taken)
    return PlanStep(
        id=name,
        executor="agent",
        action="plan_more",
        tool=PLAN_MORE,
        depends_on=tuple(step.id for step in steps),
        intent="read the results and plan on",
    )


def _add_turn(attempt: _Attempt, reply: str, answer: str) -> None:
    attempt.messages = (*attempt.messages, _say("assistant", reply[:4_000] or "(nothing)"), _say("user", answer))


def _say(role: str, content: str) -> JsonObject:
    return {"role": role, "content": content}
