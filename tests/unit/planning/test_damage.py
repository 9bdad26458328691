"""Any plan, any damage: the same plan comes out, or a refusal. Never another plan."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from agent.core.errors import PlanInvalidError
from agent.core.models import Plan, Room
from agent.planning.parse import parse_reply
from agent.planning.planner import build_plan
from agent.planning.request import PlanningRequest
from agent.tools import READ_ONLY, ToolSpec
from agent.tools.catalogue import Catalogue, SkillCard

WORDS = (
    "alpha",
    "beta report",
    "it's 5 o'clock",
    'the "best" one',
    "a, b; c",
    "costs $5",
    "line one\nline two",
    "ö ü 漢",
)


def spec(name: str) -> ToolSpec:
    properties: dict[str, Any] = {"query": {"type": "string"}, "limit": {"type": "integer"}}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": ["query"]}
    return ToolSpec(name, f"The tool {name}.", schema, None, READ_ONLY, tainted=False)


CATALOGUE = Catalogue(
    skills=(SkillCard("research", "Researches."), SkillCard("compare-things", "Compares.")),
    tools=tuple(spec(name) for name in ("fetch", "read_file", "search_web")),
)
REQUEST = PlanningRequest(question="do it", room=Room(id="r"), catalogue=CATALOGUE)


@st.composite
def wire_plans(draw: st.DrawFn) -> dict[str, Any]:
    steps = []
    for number in range(1, draw(st.integers(1, 6)) + 1):
        before = [f"s{n}" for n in range(1, number)]
        depends_on: list[str] = draw(st.lists(st.sampled_from(before), unique=True, max_size=3)) if before else []
        skill: bool = draw(st.booleans())
        inputs = [{"name": "task" if skill else "query", "value": draw(st.sampled_from(WORDS))}]
        if not skill and draw(st.booleans()):
            inputs.append({"name": "limit", "value": str(draw(st.integers(1, 99)))})
        if before and draw(st.sampled_from([True, False])):
            inputs[0]["value"] = f"{inputs[0]['value']} ${draw(st.sampled_from(before))}"
        names = ("research", "compare-things") if skill else ("fetch", "read_file", "search_web")
        steps.append(
            {
                "id": f"s{number}",
                "tool": draw(st.sampled_from(names)),
                "inputs": inputs,
                "depends_on": depends_on,
                "intent": draw(st.sampled_from(WORDS)),
            }
        )
    return {"reasoning": "r", "goal": "the goal", "language": "en", "answer_tier": "fast", "steps": steps}


def structure(text: str) -> list[int]:
    """The places outside of strings: what stands inside one is a value, and any value may be meant."""
    places, inside, escaped = [], False, False
    for place, char in enumerate(text):
        if inside:
            inside, escaped = (escaped or char != '"'), char == "\\" and not escaped
            continue
        inside = char == '"'
        if not inside:
            places.append(place)
    return places


def truncated(text: str, pick: random.Random) -> str:
    return text[: pick.randrange(1, len(text))]


def bracket_dropped(text: str, pick: random.Random) -> str:
    places = [i for i, char in enumerate(text) if char in "{}[]"]
    place = pick.choice(places)
    return text[:place] + text[place + 1 :]


def bracket_added(text: str, pick: random.Random) -> str:
    place = pick.choice(structure(text))
    return text[:place] + pick.choice("{}[]") + text[place:]


def comma_dropped(text: str, pick: random.Random) -> str:
    places = [place for place in structure(text) if text[place] == ","]
    place = pick.choice(places)
    return text[:place] + text[place + 1 :]


def quote_dropped(text: str, pick: random.Random) -> str:
    places = [match.start() for match in re.finditer(r'"', text)]
    place = pick.choice(places)
    return text[:place] + text[place + 1 :]


def colon_dropped(text: str, pick: random.Random) -> str:
    places = [match.start() for match in re.finditer(r":", text)]
    place = pick.choice(places)
    return text[:place] + text[place + 1 :]


def trailing_commas(text: str, _: random.Random) -> str:
    return re.sub(r"([}\]])(?=[}\]])", r"\1,", text)


def single_quotes(text: str, _: random.Random) -> str:
    """Of structure and of values alike, as a model that writes Python would."""
    return repr(json.loads(text)) if "'" in text else text.replace('\\"', "`").replace('"', "'").replace("`", '"')


def unquoted_keys(text: str, _: random.Random) -> str:
    return re.sub(r'"(\w+)":', r"\1:", text)


def comments(text: str, pick: random.Random) -> str:
    places = [match.end() for match in re.finditer(r", (?=\")", text)] or [1]
    place = pick.choice(places)
    return f"{text[:place]}// the next part\n{text[place:]}"


def fenced(text: str, _: random.Random) -> str:
    return f"Here is the plan:\n```json\n{text}\n```\nI hope it helps."


def thinking(text: str, _: random.Random) -> str:
    return f'<think>Perhaps {{"steps": [{{"id": "s1", "tool": "fetch"}}]}} would do?</think>\n{text}'


def prose(text: str, _: random.Random) -> str:
    return f"Sure! The plan is {text} and that is all."


def python_literals(text: str, _: random.Random) -> str:
    return str(json.loads(text))


def near_miss_key(text: str, pick: random.Random) -> str:
    key, other = pick.choice((("depends_on", "depend_on"), ("tool", "tol"), ("inputs", "input_s"), ("id", "idd")))
    return re.sub(f'"{key}":', f'"{other}":', text, count=pick.randrange(1, 3))


def emptied_dependency(text: str, pick: random.Random) -> str:
    found = list(re.finditer(r'"depends_on": \[("s\d")', text))
    if not found:
        return text
    match = pick.choice(found)
    return f'{text[: match.start(1)]}""{text[match.end(1) :]}'


def duplicated_key(text: str, pick: random.Random) -> str:
    found = list(re.finditer(r'"tool": "[\w-]+", ', text))
    match = pick.choice(found)
    return f'{text[: match.end()]}"tool": "fetch", {text[match.end() :]}'


def integer_ids(text: str, _: random.Random) -> str:
    data = json.loads(text)
    for step in data["steps"]:
        step["id"] = int(step["id"][1:])
        step["depends_on"] = [int(name[1:]) for name in step["depends_on"]]
    return json.dumps(data)


def bare_array(text: str, _: random.Random) -> str:
    return json.dumps(json.loads(text)["steps"])


def doubled(text: str, _: random.Random) -> str:
    return f"{text}\n{text}"


DAMAGES: tuple[Callable[[str, random.Random], str], ...] = (
    truncated, bracket_dropped, bracket_added, comma_dropped, quote_dropped, colon_dropped, trailing_commas,
    single_quotes, unquoted_keys, comments, fenced, thinking, prose, python_literals, near_miss_key,
    emptied_dependency, duplicated_key, integer_ids, bare_array, doubled,
)  # fmt: skip


def key_of(plan: Plan) -> str:
    """What makes a plan that plan: its steps, their tools, arguments and dependencies. Goal and intent are words."""
    steps = [
        (s.id, s.tool, json.dumps(s.args, sort_keys=True), sorted(s.depends_on))
        for s in plan.steps
        if not s.is_completion
    ]
    return json.dumps(sorted(steps))


@settings(max_examples=150)
@given(data=wire_plans(), damage=st.sampled_from(DAMAGES), seed=st.integers(0, 2**32))
def test_any_damage_gives_the_same_plan_or_a_refusal(
    data: dict[str, Any], damage: Callable[[str, random.Random], str], seed: int
) -> None:
    text = json.dumps(data, ensure_ascii=False)
    meant = key_of(build_plan(parse_reply(text), REQUEST))
    hurt = damage(text, random.Random(seed))
    try:
        understood = key_of(build_plan(parse_reply(hurt), REQUEST))
    except PlanInvalidError as error:
        event(f"refused: {error.problems[0][:40]}")
        return
    event("understood")
    assert understood == meant, f"{damage.__name__}: {hurt}"


@settings(max_examples=50)
@given(
    data=wire_plans(), damage=st.sampled_from((fenced, thinking, prose, integer_ids, bare_array)), seed=st.integers()
)
def test_what_is_only_wrapped_or_spelt_otherwise_is_understood(
    data: dict[str, Any], damage: Callable[[str, random.Random], str], seed: int
) -> None:
    text = json.dumps(data)
    meant = key_of(build_plan(parse_reply(text), REQUEST))
    assert key_of(build_plan(parse_reply(damage(text, random.Random(seed))), REQUEST)) == meant


@settings(max_examples=60)
@given(data=wire_plans(), seed=st.integers())
def test_a_reply_that_hit_its_length_is_never_a_plan(data: dict[str, Any], seed: int) -> None:
    for text in (json.dumps(data), truncated(json.dumps(data), random.Random(seed))):
        try:
            parse_reply(text, "length")
        except PlanInvalidError:
            continue
        raise AssertionError("a reply that was cut off became a plan")
