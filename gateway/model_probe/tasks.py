"""The tasks of the probe, in the order in which they are asked: what decides most comes first, in case time runs out.

The tasks are the probe's own: no task of the evaluation, and nothing of the user's, is in them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from agent.core.models import JsonObject
from agent.execution.supervisor import VERDICT_SCHEMA, parse_verdict
from agent.llm.call_forms import read_calls
from agent.llm.port import ResponseSchema
from agent.llm.prompts import format_block, render
from agent.planning.parse import parse_strict, strip_thinking
from agent.planning.planned import Planned
from agent.planning.planner import PlannerAgent
from agent.planning.request import AnswerRules, PlanningRequest, RoundCall
from agent.planning.rounds.planner import RoundPlanner
from agent.text.language import LanguageDetector
from gateway.model_probe.asked_model import AskedModel
from gateway.model_probe.probe_tools import CONVERT, ORDER, SEND, TOOLS, WEATHER, build_request, list_many_tools

TaskKind = Literal["schema", "rounds", "plans", "answers", "catalogue", "tools", "languages", "verdicts"]


class TaskResult(NamedTuple):
    """Whether the model did what the task asks, and what else it showed."""

    right: bool
    note: str = ""


ANSWERED = "answered"
"""The note of a reply that answers where a call was needed."""


@dataclass(frozen=True, slots=True)
class ProbeTask:
    """One task. `run` asks the model and may raise `ModelError` and `PlanInvalidError`."""

    kind: TaskKind
    name: str
    run: Callable[[AskedModel], Awaitable[TaskResult]]


_COLOUR: JsonObject = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "green", "blue"]}, "size": {"type": "integer"}},
    "required": ["colour", "size"],
    "additionalProperties": False,
}


async def _bind_to_schema(model: AskedModel) -> TaskResult:
    """Asks for prose under a schema: only an endpoint that binds the reply sends the object."""
    reply = await model.complete(_say("Write one friendly sentence to Anna."), schema=ResponseSchema("box", _COLOUR))
    parsed = parse_strict(strip_thinking(reply.text))
    if not isinstance(parsed, dict) or parsed.keys() != {"colour", "size"}:
        return TaskResult(False)
    return TaskResult(parsed["colour"] in ("red", "green", "blue") and isinstance(parsed["size"], int))


async def _bind_to_choice(model: AskedModel) -> TaskResult:
    """The same with one of several objects, as decisions are."""
    forms: list[JsonObject] = [
        {
            "type": "object",
            "properties": {"tool": {"type": "string", "enum": [name]}, "inputs": inputs},
            "required": ["tool", "inputs"],
            "additionalProperties": False,
        }
        for name, inputs in (("paint", _COLOUR), ("wash", {**_COLOUR, "properties": {}, "required": []}))
    ]
    schema: JsonObject = {
        "type": "object",
        "properties": {"next": {"anyOf": [*forms]}},
        "required": ["next"],
        "additionalProperties": False,
    }
    reply = await model.complete(_say("Write one friendly sentence to Anna."), schema=ResponseSchema("next", schema))
    parsed = parse_strict(strip_thinking(reply.text))
    chosen = parsed.get("next") if isinstance(parsed, dict) else None
    return TaskResult(isinstance(chosen, dict) and chosen.get("tool") in ("paint", "wash"))


def _decide(name: str, request: PlanningRequest, tool: str, **args: str | int) -> ProbeTask:
    """The task of deciding on one call in a round; `args` are inputs that it must have."""

    async def run(model: AskedModel) -> TaskResult:
        return _judge_calls(await RoundPlanner(model).plan(request), {tool: args})

    return ProbeTask("rounds", name, run)


def _finish(name: str, request: PlanningRequest) -> ProbeTask:
    """The task of seeing that everything is known."""

    async def run(model: AskedModel) -> TaskResult:
        planned = await RoundPlanner(model).plan(request)
        return TaskResult(planned.effective == "llm" and not _list_tools(planned))

    return ProbeTask("rounds", name, run)


def _plan(name: str, question: str, **tools: dict[str, str | int]) -> ProbeTask:
    """The task of planning all of a request at once: every one of `tools`, with these inputs."""

    async def run(model: AskedModel) -> TaskResult:
        planned = await PlannerAgent(model).plan(replace(build_request(question, TOOLS), answer=AnswerRules("empty")))
        return _judge_calls(planned, tools)

    return ProbeTask("plans", name, run)


def _chat(name: str, question: str) -> ProbeTask:
    """The task of answering small talk although the question is asked whether a tool is needed."""

    async def run(model: AskedModel) -> TaskResult:
        planned = await RoundPlanner(model).plan(replace(build_request(question, TOOLS), checks_answers=True))
        if planned.effective != "llm":
            return TaskResult(False, planned.fallback_reason or "no plan")
        return TaskResult(False, "false alarm") if _list_tools(planned) else TaskResult(True)

    return ProbeTask("answers", name, run)


def _choose_among(count: int) -> ProbeTask:
    """The task of finding a tool among `count`."""

    async def run(model: AskedModel) -> TaskResult:
        request = build_request("What is the weather in Lisbon?", list_many_tools(count))
        return _judge_calls(await RoundPlanner(model).plan(request), {WEATHER.name: {"city": "Lisbon"}})

    return ProbeTask("catalogue", str(count), run)


def _call_natively(name: str, question: str, tool: str, **args: str | int) -> ProbeTask:
    """The task of calling a tool that the request offers; the note is the form of the call."""

    async def run(model: AskedModel) -> TaskResult:
        offered: tuple[JsonObject, ...] = tuple(
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": t.input_schema},
            }
            for t in TOOLS
        )
        reply = await model.complete(_say(question), tools=offered)
        calls = read_calls(reply.text, reply.tool_calls, {one.name: one.input_schema for one in TOOLS})
        form = "native" if reply.tool_calls else "written"
        right = any(call.name == tool and _has_inputs(call.arguments, args) for call in calls.calls)
        return TaskResult(right, form if calls.calls else "")

    return ProbeTask("tools", name, run)


def _speak(language: str, question: str, answer: str) -> ProbeTask:
    """The task of answering a question in its language."""

    async def run(model: AskedModel) -> TaskResult:
        text = (await model.complete(_say(question))).text
        spoken = await LanguageDetector().detect(text)
        return TaskResult(answer.lower() in text.lower() and spoken == language)

    return ProbeTask("languages", language, run)


def _judge(name: str, intent: str, evidence: str, output: str, *, is_good: bool) -> ProbeTask:
    """The task of judging a step."""

    async def run(model: AskedModel) -> TaskResult:
        blocks = [
            format_block("intent", intent),
            format_block("evidence", evidence, source=ORDER.name),
            format_block("output", output, step="s2", tool="completion"),
        ]
        messages: tuple[JsonObject, ...] = (
            {"role": "system", "content": render("supervisor")},
            {"role": "user", "content": "\n".join(blocks)},
        )
        verdict = parse_verdict((await model.complete(messages, schema=VERDICT_SCHEMA)).text)
        return TaskResult(
            verdict is not None and (verdict.outcome == "SUCCESS") == is_good, "" if verdict else "unreadable"
        )

    return ProbeTask("verdicts", name, run)


def _judge_calls(planned: Planned, wanted: dict[str, dict[str, str | int]]) -> TaskResult:
    """Whether a plan of the model's has these calls, and no changing one that nobody asked for."""
    if planned.effective != "llm":
        return TaskResult(False, planned.fallback_reason or "no plan")
    tools = _list_tools(planned)
    if not tools:
        return TaskResult(False, ANSWERED)
    steps = planned.plan.steps
    has_all = all(
        any(step.tool == tool and _has_inputs(step.args, args) for step in steps) for tool, args in wanted.items()
    )
    return TaskResult(has_all and (SEND.name not in tools or SEND.name in wanted))


def _list_tools(planned: Planned) -> list[str]:
    return [step.tool for step in planned.plan.steps if step.action == "tool"]


def _has_inputs(args: JsonObject, wanted: dict[str, str | int]) -> bool:
    """Whether the inputs hold these values, in any notation of a number and any case of a text."""
    return all(str(value).lower() in str(args.get(name, "")).lower() for name, value in wanted.items())


def _say(text: str) -> tuple[JsonObject, ...]:
    return ({"role": "user", "content": text},)


_OSLO = RoundCall(0, WEATHER.name, {"city": "Oslo"}, "4 degrees, light rain", missing=("the weather in Oslo",))
_BOTH = "What is the weather in Oslo, and how much are 20 EUR in SEK?"

PROBE_TASKS: tuple[ProbeTask, ...] = (
    ProbeTask("schema", "object", _bind_to_schema),
    ProbeTask("schema", "choice", _bind_to_choice),
    _decide("weather", build_request("What is the weather in Oslo?", TOOLS), WEATHER.name, city="Oslo"),
    _decide("order", build_request("Where is my order 4711?", TOOLS), ORDER.name, order_id="4711"),
    _decide("money", build_request("How much are 20 EUR in SEK?", TOOLS), CONVERT.name, amount=20, to="SEK"),
    _decide("effect", build_request("Tell Anna: the train is late.", TOOLS), SEND.name, to="Anna", text="late"),
    _decide("rest", build_request(_BOTH, TOOLS, rounds=(_OSLO,)), CONVERT.name, amount=20),
    _finish("enough", build_request("What is the weather in Oslo?", TOOLS, rounds=(_OSLO,))),
    _chat("greeting", "Good morning! I hope you slept well."),
    _chat("writing", "Write a rhyme about a cat and a hat."),
    _plan("one", "What is the weather in Oslo?", get_weather={"city": "Oslo"}),
    _plan("two", _BOTH, get_weather={"city": "Oslo"}, convert_money={"amount": 20}),
    _plan("chain", "Look up order 4711 and send its status to Anna.", get_order={"order_id": "4711"}, send_message={}),
    _plan(
        "longer",
        "Look up the orders 4711 and 4712 and the weather in Oslo, and send Anna the three results.",
        get_order={"order_id": "4712"},
        get_weather={"city": "Oslo"},
        send_message={"to": "Anna"},
    ),
    _choose_among(10),
    _choose_among(20),
    _choose_among(40),
    _call_natively("weather", "What is the weather in Oslo?", WEATHER.name, city="Oslo"),
    _call_natively("order", "Where is my order 4711?", ORDER.name, order_id="4711"),
    _judge(
        "good",
        "tell the status of order 4711",
        "order 4711: shipped on 3 May, arrives on 5 May",
        "Order 4711 was shipped on 3 May and arrives on 5 May.",
        is_good=True,
    ),
    _judge(
        "bad",
        "tell the status of order 4711",
        "order 4711: shipped on 3 May, arrives on 5 May",
        "Bananas are rich in potassium.",
        is_good=False,
    ),
    _speak("de", "Wie heißt die Hauptstadt von Norwegen? Antworte auf Deutsch in einem ganzen Satz.", "Oslo"),
    _speak("sv", "Vad heter huvudstaden i Finland? Svara på svenska med en hel mening.", "Helsingfors"),
    _speak("fr", "Quelle est la capitale de l'Italie ? Réponds en français par une phrase entière.", "Rome"),
)
