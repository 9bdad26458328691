"""The script of a model: rules that say what it answers, or how it fails. One form for both doubles."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Fault = Literal[
    "status_400", "status_401", "status_429", "status_500", "status_503", "context", "refuse_schema",
    "garbage", "empty", "half_stream", "disconnect", "hang",
    "reset", "reset_stream", "stall", "garbage_json", "nothing", "huge_line", "drip", "twice", "split",
]  # fmt: skip
"""How a reply fails. Those from `reset` on are faults of the wire, which only the server can have: a connection that is
reset before or amid the answer, an answer that stops coming, JSON that is none, a 200 without a byte, a line of 10 MB,
one byte every `pause_s`, every chunk twice, and chunks that are cut inside a character."""

WIRE_FAULTS: frozenset[str] = frozenset(
    {"reset", "reset_stream", "stall", "garbage_json", "nothing", "huge_line", "drip", "twice", "split"}
)


@dataclass(frozen=True)
class Call:
    """A tool call the model asks for."""

    name: str
    args: dict[str, Any]
    id: str = "call_1"


@dataclass(frozen=True)
class Reply:
    """What is answered. `delay_s` before the first byte; `chunk` characters a streamed piece, `pause_s` after each."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish_reason: str = ""
    prompt_tokens: int = 10
    completion_tokens: int = 5
    reasoning: str = ""
    delay_s: float = 0.0
    chunk: int = 8
    pause_s: float = 0.0
    fault: Fault | None = None
    retry_after: float | None = None

    @property
    def finish(self) -> str:
        """The finish reason sent."""
        return self.finish_reason or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True)
class Rule:
    """When to answer what: all conditions hold, and it has not been used `times` times."""

    reply: Reply
    purpose: str | None = None
    contains: str | None = None
    model: str | None = None
    times: int | None = None


ASK_QUESTION = "You decide what a request asks for."
NEED_QUESTION = "You decide what a request needs before it can be answered."
"""The beginnings of the prompts that ask about a request by examples (`agent.planning.rounds.tool_need`)."""
CHANGES_QUESTION = "Before anything else"
"""The beginning of the question with which tools the request asks to change something."""
MEANING_QUESTION = "A person was asked whether something may be done"
"""The beginning of the prompt that asks what a reply to a plan means."""
SIDE_QUESTIONS = {
    NEED_QUESTION: Reply(text="lookup"),
    ASK_QUESTION: Reply(text='{"asks":"change"}'),
    MEANING_QUESTION: Reply(text='{"means":"other"}'),
}
"""What the script says to them, so that its rules are about decisions, unless one of them is about the question. Which
tools the request wants to change something with, `wants` says."""


@dataclass
class Script:
    """Rules in order; the first that fits answers. Counts how often each was used."""

    rules: Sequence[Rule] = ()
    used: dict[int, int] = field(default_factory=dict)

    def answer(self, purpose: str, body: dict[str, Any]) -> Reply | None:
        """The reply to a request, or None when no rule fits."""
        text = json.dumps(body.get("messages"), ensure_ascii=False)
        question = find_side_question(body)
        if question and not any(rule.contains == question for rule in self.rules):
            return SIDE_QUESTIONS[question]
        for number, rule in enumerate(self.rules):
            if rule.purpose not in (None, purpose) or rule.model not in (None, body.get("model")):
                continue
            if rule.contains is not None and json.dumps(rule.contains, ensure_ascii=False)[1:-1] not in text:
                continue
            if rule.times is not None and self.used.get(number, 0) >= rule.times:
                continue
            self.used[number] = self.used.get(number, 0) + 1
            return rule.reply
        return None

    def dumps(self) -> str:
        """As JSON, for a server in another process."""
        return json.dumps([asdict(rule) for rule in self.rules])

    @staticmethod
    def loads(text: str) -> "Script":
        """From JSON."""
        rules = []
        for data in json.loads(text):
            reply = data.pop("reply")
            calls = tuple(Call(**call) for call in reply.pop("calls"))
            rules.append(Rule(reply=Reply(**reply, calls=calls), **data))
        return Script(rules)


def find_side_question(body: dict[str, Any]) -> str:
    """The question about the user's request that a call only asks, by the beginning of its prompt; "" for others."""
    messages = body.get("messages") or [{}]
    begin = str(messages[0].get("content") or "")
    return next((question for question in SIDE_QUESTIONS if begin.startswith(question)), "")


def is_side_reply(reply: Reply | None) -> bool:
    """Whether a reply is the script's own to a question that no rule is about. Such calls count for no test."""
    return any(reply is one for one in SIDE_QUESTIONS.values())


def script(*rules: Rule) -> Script:
    """A script of rules."""
    return Script(list(rules))


def says(
    text: str = "",
    *,
    to: str | None = None,
    about: str | None = None,
    times: int | None = None,
    model: str | None = None,
    **reply: Any,
) -> Rule:
    """A rule: to requests of purpose `to` that contain `about`, the model says `text`."""
    return Rule(Reply(text=text, **reply), purpose=to, contains=about, times=times, model=model)


def answers(text: str, **conditions: Any) -> Rule:
    """A rule: the planner answers by itself with this text."""
    return says(f"ANSWER\n{text}", to="planner", **conditions)


def plans(*steps: dict[str, Any], about: str | None = None, times: int | None = None, tier: str = "fast") -> Rule:
    """A rule: the planner answers with these steps, in the wire form."""
    wire = []
    for number, step in enumerate(steps, start=1):
        inputs = [{"name": key, "value": value} for key, value in step.get("inputs", {}).items()]
        wire.append(
            {
                "id": step.get("id", f"s{number}"),
                "tool": step["tool"],
                **({"tools": step["tools"]} if "tools" in step else {}),
                "inputs": inputs,
                "depends_on": step.get("depends_on", []),
                "intent": step.get("intent", f"use {step['tool']}"),
            }
        )
    plan = {"reasoning": "r", "goal": "the goal", "language": "en", "answer_tier": tier, "steps": wire}
    return says(json.dumps(plan), to="planner", about=about, times=times)


def decides(*calls: dict[str, Any], missing: Sequence[str] = ("a result",), **conditions: Any) -> Rule:
    """A rule: the planner of a small model decides on these calls; without any, to answer."""
    decision: dict[str, Any] = {"kind": "answer"}
    if calls:
        todo = [*missing, *(call["tool"] for call in calls[len(missing) :])]
        made = [
            {"for": number, "tool": call["tool"], "inputs": call.get("inputs", {})}
            for number, call in enumerate(calls, start=1)
        ]
        left = [{"for": number, "tool": "later"} for number in range(len(calls) + 1, len(todo) + 1)]
        decision = {"kind": "calls", "todo": todo, "calls": [*made, *left]}
    return says(json.dumps({"next": decision}), to="planner", **conditions)


def is_writing(**conditions: Any) -> Rule:
    """A rule: the model takes the request for one that is answered by writing alone."""
    return says("nothing", to="planner", about=NEED_QUESTION, **conditions)


def needs(tool: str, **conditions: Any) -> Rule:
    """A rule: asked which tool is needed before it answers, the model names this one."""
    return says(json.dumps({"tool": tool}), to="planner", about="Before it is answered", **conditions)


def wants(*tools: str, **conditions: Any) -> Rule:
    """A rule: asked with which tools the request asks to change something, the model names these, or the first one."""
    named = [*tools] or ["none"]
    choice = json.dumps({"tool": named[0], "tools": named})
    return says(choice, to="planner", about=CHANGES_QUESTION, **conditions)


def asks_for(what: str, **conditions: Any) -> Rule:
    """A rule: asked whether a request asks for information or a change, the model says this."""
    return says(json.dumps({"asks": what}), to="planner", about=ASK_QUESTION, **conditions)


def judges(outcome: str, reason: str = "as judged", fix: str = "", **conditions: Any) -> Rule:
    """A rule: the judge gives this verdict."""
    verdict = {"reason": reason, "evidence": "", "outcome": outcome, "suggested_fix": fix}
    return says(json.dumps(verdict), to="supervisor", **conditions)


def entails(*verdicts: tuple[str, ...], **conditions: Any) -> Rule:
    """A rule: the claim check gives these verdicts in order, each a verdict and the words it rests on."""
    claims = [
        {"claim": number, "words": list(words), "verdict": verdict}
        for number, (verdict, *words) in enumerate(verdicts, start=1)
    ]
    return says(json.dumps({"claims": claims}), to="entailment", **conditions)
