"""A plan against the catalogue: every problem in a sentence of its own; without any, the plan in its public form."""

import pytest

from agent.core.errors import PlanInvalidError
from agent.core.models import JsonObject, Plan, PlanStep
from agent.planning.normalise import normalise_plan
from agent.planning.validate import find_argument_problems, find_leaf_steps, finish_plan, format_problems, validate_plan
from tests.support.builders import completion_step, tool_step
from tests.unit.planning.kitchen import CATALOGUE, CONVERT, wire_plan, wire_step


def valid(*steps: JsonObject, known_ids: tuple[str, ...] = (), max_steps: int = 12, **fields: str) -> Plan:
    raw = normalise_plan(wire_plan(*steps, **fields), CATALOGUE)
    return validate_plan(raw, CATALOGUE, max_steps=max_steps, known_ids=known_ids)


def problems(*steps: JsonObject, known_ids: tuple[str, ...] = (), max_steps: int = 12, **fields: str) -> list[str]:
    with pytest.raises(PlanInvalidError) as caught:
        valid(*steps, known_ids=known_ids, max_steps=max_steps, **fields)
    return caught.value.problems


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        (
            "deep_reserch",
            "step s1 names 'deep_reserch', which is neither a skill nor a tool here; did you mean 'deep_research'?",
        ),
        (
            "calculatr",
            "step s1 names 'calculatr', which is neither a skill nor a tool here; did you mean 'calculator'?",
        ),
        ("launch_rocket", "step s1 names 'launch_rocket', which is neither a skill nor a tool here"),
        ("", "step s1 names '', which is neither a skill nor a tool here"),
    ],
)
def test_a_name_that_is_not_in_the_catalogue_is_refused_with_the_nearest_one(tool: str, problem: str) -> None:
    assert problems(wire_step("s1", tool)) == [problem]


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([wire_step("s1", "calculator", "s1")], "step s1 depends on itself"),
        ([wire_step("s1", "calculator", "s7")], "step s1 depends on 's7', which is not a step of this plan"),
        ([wire_step("s1"), wire_step("s1", "current_time")], "the id 's1' is used twice"),
        (
            [wire_step("s1", "calculator", "s2"), wire_step("s2", "calculator", "s1")],
            "the steps s1, s2 depend on one another in a circle",
        ),
        (
            [
                wire_step("a", "calculator", "c"),
                wire_step("b", "calculator", "a"),
                wire_step("c", "calculator", "b"),
                wire_step("d"),
            ],
            "the steps a, b, c depend on one another in a circle",
        ),
        (
            [wire_step("a", "web_fetch", url="$s2"), wire_step("s2", "web_fetch", "a", url="https://a.se")],
            "the steps a, s2 depend on one another in a circle",
        ),
        ([wire_step("s1", "web_fetch", url="$s4.url")], "step s1 refers to $s4, which is not a step of this plan"),
        ([wire_step("s1", "web_fetch", url="${other}")], "step s1 refers to $other, which is not a step of this plan"),
        ([wire_step("s1", "web_fetch", url="$s1.url")], "step s1 depends on itself"),
        (
            [wire_step("s1", "completion"), wire_step("s2", "completion")],
            "a plan has at most one completion, which writes the answer",
        ),
        (
            [wire_step("s1", "completion"), wire_step("s2", "calculator", "s1")],
            "step s2 depends on the completion s1; the completion must be the last step",
        ),
        (
            [wire_step("1step")],
            "step 1step: an id is a letter and up to 31 letters, digits, - or _; use s1, s2, ...",
        ),
        (
            [wire_step("s" * 33)],
            f"step {'s' * 33}: an id is a letter and up to 31 letters, digits, - or _; use s1, s2, ...",
        ),
    ],
)
def test_what_is_wrong_with_the_shape_of_a_plan(steps: list[JsonObject], problem: str) -> None:
    assert problems(*steps) == [problem]


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (wire_step("s1", "web_fetch"), "step s1: 'url' is a required property"),
        (wire_step("s1", "convert", amount="much"), "step s1: input 'amount': 'much' is not of type 'number'"),
        (wire_step("s1", "convert", amount="1", to="USD"), "step s1: input 'to': 'USD' is not one of ['EUR', 'SEK']"),
        (wire_step("s1", "convert", amount="1", digits="2.5"), "step s1: input 'digits': '2.5' is not of type"),
        (wire_step("s1", "convert", amount="1", digits="-1"), "step s1: input 'digits': -1 is less than the minimum"),
        (wire_step("s1", "convert", amount="1", tags="[1]"), "step s1: input 'tags.0': 1 is not of type 'string'"),
        (wire_step("s1", "web_fetch", url="u", speed="1"), "step s1: unknown input 'speed'; known: url"),
    ],
)
def test_arguments_are_held_against_the_schema_of_the_tool(step: JsonObject, problem: str) -> None:
    assert problems(step)[0].startswith(problem)


@pytest.mark.parametrize("value", ["$s1", "${s1.output.n}", {"$from": "s1", "path": "output.n"}, ["$s1"]])
def test_a_reference_fits_an_input_of_any_type(value: str | JsonObject) -> None:
    assert find_argument_problems(CONVERT.input_schema, {"amount": value}) == []


def test_a_reference_excuses_its_own_input_only() -> None:
    found = find_argument_problems(CONVERT.input_schema, {"amount": "$s1", "to": "USD"})
    assert found == ["input 'to': 'USD' is not one of ['EUR', 'SEK']"]


@pytest.mark.parametrize(("count", "limit", "fits"), [(1, 1, True), (3, 3, True), (4, 3, False), (13, 12, False)])
def test_a_plan_has_at_most_so_many_steps(count: int, limit: int, fits: bool) -> None:
    steps = [wire_step(f"s{number}") for number in range(1, count + 1)]
    if fits:
        assert len(valid(*steps, max_steps=limit).steps) == count
    else:
        assert problems(*steps, max_steps=limit) == [f"the plan has {count} steps; it may have 1 to {limit}"]


def test_a_plan_without_steps_is_refused() -> None:
    assert problems() == ["the plan has 0 steps; it may have 1 to 12"]


def test_all_problems_are_told_at_once() -> None:
    found = problems(wire_step("s1", "nonsense"), wire_step("s2", "web_fetch", "s9"))
    assert [text.split(" ", 2)[1] for text in found] == ["s1", "s2:", "s2"]
    assert format_problems(found) == "\n".join(("<problems>", *(f"- {text}" for text in found), "</problems>"))


def test_a_reference_makes_a_dependency_of_its_own() -> None:
    plan = valid(
        wire_step("s3", "convert", "s2", amount="$s1"), wire_step("s1"), wire_step("s2", "web_fetch", url="https://a")
    )
    assert plan.get_step("s3").depends_on == ("s2", "s1")
    assert [step.id for step in plan.steps] == ["s1", "s2", "s3"], "dependencies come first"


def test_finished_steps_may_be_referred_to_but_not_defined_again() -> None:
    plan = valid(wire_step("s5", "web_fetch", "old", url="$s1.url"), known_ids=("s1", "old"))
    assert plan.get_step("s5").depends_on == ("old", "s1")
    assert problems(wire_step("s1"), known_ids=("s1",)) == ["the id 's1' belongs to a finished step; use a new one"]


@pytest.mark.parametrize(
    ("tool", "inputs", "executor", "action", "effect"),
    [
        ("calculator", {"expression": "1"}, "agent", "tool", "read"),
        ("memory_save", {"text": "x"}, "agent", "memory", "effect"),
        ("summarise-text", {"task": "x"}, "skill", "skill", "read"),
        ("deep_research", {"task": "x"}, "skill", "skill", "effect"),
        ("completion", {}, "litellm", "completion", "read"),
    ],
)
def test_a_step_goes_to_whom_it_belongs_with_the_effect_it_may_have(
    tool: str, inputs: dict[str, str], executor: str, action: str, effect: str
) -> None:
    step = valid(wire_step("s1", tool, **inputs)).steps[0]
    assert (step.executor, step.action, step.effect) == (executor, action, effect)


@pytest.mark.parametrize(
    ("raw_tier", "plan_tier", "tier"), [(None, "high", "high"), ("fast", "high", "fast"), (None, "fast", "fast")]
)
def test_a_completion_is_written_by_the_tier_the_plan_asks_for(raw_tier: str | None, plan_tier: str, tier: str) -> None:
    step = {**wire_step("s1", "completion", text="ignored"), **({"tier": raw_tier} if raw_tier else {})}
    written = valid(step, answer_tier=plan_tier).steps[0]
    assert (written.tier, written.args) == (tier, {})


def test_a_completion_waits_for_every_other_step() -> None:
    plan = valid(wire_step("s9", "completion", "s2"), wire_step("s1"), wire_step("s2"))
    assert [step.id for step in plan.steps] == ["s1", "s2", "s9"]
    assert plan.get_step("s9").depends_on == ("s2", "s1")


@pytest.mark.parametrize(
    ("intent", "goal", "task"), [("look it up", "know", "look it up"), ("", "know", "know"), ("", "", None)]
)
def test_a_skill_without_a_task_takes_the_intent_or_the_goal(intent: str, goal: str, task: str | None) -> None:
    step = {**wire_step("s1", "summarise-text"), "intent": intent}
    if task is None:
        assert "needs an input" in problems(step, goal=goal)[0]
    else:
        assert valid(step, goal=goal).steps[0].args == {"task": task}


SKILL = PlanStep(id="k", executor="skill", action="skill", tool="deep_research", args={"task": "t"})


@pytest.mark.parametrize(
    ("steps", "needs", "has_model", "last"),
    [
        ((tool_step("a"),), False, False, "a"),
        ((tool_step("a"),), False, True, "answer"),
        ((SKILL,), False, True, "k"),
        ((SKILL,), True, True, "answer"),
        ((tool_step("a"), SKILL), False, False, "answer"),
        ((tool_step("a"), tool_step("b", "t", "a")), False, False, "b"),
        ((tool_step("a"), tool_step("answer")), False, True, "answer2"),
        ((tool_step("a"), completion_step("c", "a")), True, True, "c"),
    ],
)
def test_a_completion_is_added_where_one_is_due(
    steps: tuple[PlanStep, ...], needs: bool, has_model: bool, last: str
) -> None:
    plan = finish_plan(Plan(goal="g", steps=steps), needs_completion=needs, has_model=has_model)
    assert plan.steps[-1].id == last
    if last not in {step.id for step in steps}:
        assert plan.steps[-1].depends_on == tuple(step.id for step in steps)


def test_the_added_completion_takes_no_id_of_an_earlier_plan() -> None:
    plan = Plan(goal="g", steps=(tool_step("s4"),))
    finished = finish_plan(plan, needs_completion=True, has_model=True, used_ids=frozenset({"answer", "answer2"}))
    assert [step.id for step in finished.steps] == ["s4", "answer3"]


def test_leaves_are_the_steps_nothing_builds_on() -> None:
    assert [step.id for step in find_leaf_steps((tool_step("a"), tool_step("b", "t", "a"), tool_step("c")))] == [
        "b",
        "c",
    ]
