"""What a model may write in several ways becomes one way; what could mean two things is refused."""

import pytest
from pydantic import JsonValue

from agent.core.errors import PlanInvalidError
from agent.core.models import JsonObject
from agent.planning.normalise import RawPlan, normalise_plan
from tests.unit.planning.kitchen import CATALOGUE


def normal(*steps: JsonObject, **fields: JsonValue) -> RawPlan:
    return normalise_plan({"steps": list(steps), **fields}, CATALOGUE)


def problems(*steps: JsonObject) -> list[str]:
    with pytest.raises(PlanInvalidError) as caught:
        normal(*steps)
    return caught.value.problems


@pytest.mark.parametrize("key", ["tool", "tool_name", "skill", "name", "Tool", "TOOL", "tool-name", "tool name"])
def test_a_tool_goes_by_several_keys(key: str) -> None:
    assert normal({key: "calculator"}).steps[0].tool == "calculator"


@pytest.mark.parametrize("key", ["depends_on", "dependencies", "depends", "dependsOn", "depends-on", "after", "needs"])
def test_dependencies_go_by_several_keys(key: str) -> None:
    assert normal({"id": "a"}, {"id": "b", key: ["a"]}).steps[1].depends_on == ("a",)


@pytest.mark.parametrize("key", ["args", "arguments", "inputs", "input", "parameters", "params"])
def test_arguments_go_by_several_keys(key: str) -> None:
    assert normal({"tool": "calculator", key: {"expression": "1"}}).steps[0].args == {"expression": "1"}


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({"depend_on": ["s1"]}, 'step 1 has an unknown key "depend_on"; did you mean "depends_on"?'),
        ({"tol": "calculator"}, 'step 1 has an unknown key "tol"; did you mean "tool"?'),
        ({"xyzzy": 1}, 'step 1 has an unknown key "xyzzy"'),
        ({"tool": "calculator", "skill": "x"}, 'step 1 has "tool" twice (as "skill")'),
        ({"depends_on": [""]}, 'step s1: depends_on holds "", which is not a step id'),
        ({"depends_on": ""}, 'step s1: depends_on holds "", which is not a step id'),
        ({"depends_on": "s1,"}, 'step s1: depends_on holds "", which is not a step id'),
        ({"depends_on": [None]}, "step s1: depends_on holds null, which is not a step id"),
        ({"depends_on": [True]}, "step s1: depends_on holds true, which is not a step id"),
        ({"depends_on": [1.5]}, "step s1: depends_on holds 1.5, which is not a step id"),
        ({"depends_on": [["s1"]]}, 'step s1: depends_on holds ["s1"], which is not a step id'),
        ({"depends_on": {"id": "s1"}}, 'step s1: depends_on holds {"id": "s1"}, which is not a step id'),
        ({"inputs": ["x"]}, 'step s1: every input must be {"name": ..., "value": ...}'),
        ({"inputs": [{"name": "x", "valeu": "y"}]}, 'step s1: every input must be {"name": ..., "value": ...}'),
        ({"inputs": [{}]}, 'step s1: every input must be {"name": ..., "value": ...}'),
        (
            {"inputs": [{"name": "x", "value": "1"}, {"name": "x", "value": "2"}]},
            'step s1 has the input "x" twice',
        ),
        ({"tool": "calculator", "inputs": "1+1"}, "step s1: inputs must be a list of name/value pairs"),
        ({"tool": "calculator", "inputs": "[1]"}, "step s1: inputs must be a list of name/value pairs"),
    ],
)
def test_what_may_mean_two_things_is_named(step: JsonObject, problem: str) -> None:
    assert problems(step) == [problem]


@pytest.mark.parametrize("inputs", [5, True])
def test_inputs_that_are_no_inputs_are_not_dropped(inputs: JsonValue) -> None:
    assert problems({"tool": "deep_research", "inputs": inputs, "intent": "look"})


@pytest.mark.parametrize("name", ["task", "value"])
def test_an_input_that_lost_its_value_is_refused(name: str) -> None:
    assert problems({"tool": "deep_research", "inputs": [{"name": name}], "intent": "look"})


def test_an_input_that_lost_its_name_is_refused() -> None:
    assert problems({"tool": "deep_research", "inputs": [{"value": "the task"}], "intent": "look"})


def test_every_problem_is_named_at_once() -> None:
    found = problems({"tol": "x"}, {"id": "b", "depends_on": [""]}, {"id": "c", "inputs": ["x"]})
    assert [problem.partition(" ")[0] for problem in found] == ["step"] * 3
    assert ["tol" in found[0], "step b" in found[1], "step c" in found[2]] == [True] * 3


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("s1", "s1"),
        (1, "s1"),
        ("1", "s1"),
        (0, "s0"),
        (" s1 ", "s1"),
        ("fetch-page_2", "fetch-page_2"),
        ("step 1", "step_1"),
        (None, "s1"),
        ("", "s1"),
        (True, "s1"),
    ],
)
def test_ids(written: JsonValue, meant: str) -> None:
    assert normal({"id": written}).steps[0].id == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (["s1"], ("s1",)),
        (["s1", "s2"], ("s1", "s2")),
        (["s1", "s1"], ("s1",)),
        ("s1", ("s1",)),
        ("s1, s2", ("s1", "s2")),
        (1, ("s1",)),
        ([1, "2"], ("s1", "s2")),
        (["$s1"], ("s1",)),
        (None, ()),
        ([], ()),
        ("none", ()),
        ("null", ()),
        ("[]", ()),
    ],
)
def test_dependencies(written: JsonValue, meant: tuple[str, ...]) -> None:
    steps = normal({"id": "s1"}, {"id": "s2"}, {"id": "s3", "depends_on": written}).steps
    assert steps[2].depends_on == meant


def test_steps_written_by_number_keep_their_dag() -> None:
    steps = normal({"id": 1}, {"id": 2, "depends_on": [1]}, {"id": 3, "depends_on": ["1", 2]}).steps
    assert [(step.id, step.depends_on) for step in steps] == [("s1", ()), ("s2", ("s1",)), ("s3", ("s1", "s2"))]


@pytest.mark.row("S002-24")
@pytest.mark.parametrize(
    ("ids", "written", "meant"),
    [
        ((None, None, None), ([], [0], [0, 1]), ((), ("s1",), ("s1", "s2"))),
        ((None, None, None), ([], ["0"], "0, 1"), ((), ("s1",), ("s1", "s2"))),
        (("a", "b", "c"), ([], [0], ["a", 1]), ((), ("a",), ("a", "b"))),
        ((None, None, None), ([], [1], [1, 2]), ((), ("s1",), ("s1", "s2"))),
        ((0, 1, 2), ([], [0], [0, 1]), ((), ("s0",), ("s0", "s1"))),
        ((1, 2, 3), ([], [0], [1]), ((), ("s0",), ("s1",))),  # which they mean is not known: refused for "s0"
        ((None, None, None), ([0], [1], [2]), (("s1",), ("s2",), ("s3",))),  # refused: each depends on itself
        ((None, None, None), ([], [0], [3]), ((), ("s1",), ("s3",))),
    ],
)
def test_dependencies_counted_from_zero(
    ids: tuple[JsonValue, ...], written: tuple[JsonValue, ...], meant: tuple[tuple[str, ...], ...]
) -> None:
    steps: list[JsonObject] = [{"tool": "calculator", "depends_on": one} for one in written]
    named: list[JsonObject] = [
        step if name is None else {**step, "id": name} for name, step in zip(ids, steps, strict=True)
    ]
    assert tuple(step.depends_on for step in normal(*named).steps) == meant


@pytest.mark.row("S002-24")
def test_steps_in_the_words_action_target_and_parameters() -> None:
    steps = normal(
        {"action": "call", "target": "calculator", "parameters": {"expression": "1"}},
        {"action": "calculator", "target": "", "depends_on": [0]},
        {"action": "call", "target": "nothing like it"},
    ).steps
    assert [(step.tool, step.args, step.depends_on) for step in steps] == [
        ("calculator", {"expression": "1"}, ()),
        ("calculator", {}, ("s1",)),
        ("nothing like it", {}, ()),
    ]
    assert "twice" in problems({"tool": "calculator", "target": "web_fetch"})[0]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("calculator", "calculator"),
        ("Calculator", "calculator"),
        ("web-fetch", "web_fetch"),
        ("Web Fetch", "web_fetch"),
        ("summarise_text", "summarise-text"),
        ("DEEP-RESEARCH", "deep_research"),
        ("completion", "completion"),
        ("Answer", "completion"),
        ("final answer", "completion"),
        ("litellm", "completion"),
        ("nothing_like_it", "nothing_like_it"),
        ("", ""),
        (None, ""),
    ],
)
def test_names_of_tools(written: JsonValue, meant: str) -> None:
    assert normal({"tool": written}).steps[0].tool == meant


def test_an_action_stands_in_for_a_missing_tool() -> None:
    assert normal({"action": "completion", "executor": "litellm"}).steps[0].tool == "completion"
    assert normal({"action": "calculator"}).steps[0].tool == "calculator"


@pytest.mark.parametrize(
    ("name", "written", "meant"),
    [
        ("amount", "12", 12),
        ("amount", "12.5", 12.5),
        ("amount", " -3 ", -3),
        ("amount", "1e3", 1000.0),
        ("amount", "twelve", "twelve"),
        ("amount", "1,5", "1,5"),
        ("amount", "$s1", "$s1"),
        ("digits", "+2", 2),
        ("digits", "2.0", "2.0"),
        ("exact", "True", True),
        ("exact", "false", False),
        ("exact", "yes", "yes"),
        ("tags", '["a", "b"]', ["a", "b"]),
        ("tags", "a, b", "a, b"),
        ("tags", "a", ["a"]),
        ("tags", "$s1", "$s1"),
        ("tags", "$item.tags", "$item.tags"),
        ("tags", "[a", "[a"),
        ("options", '{"a": 1}', {"a": 1}),
        ("to", "12", "12"),
        ("to", "true", "true"),
        ("least", "12", 12),
        ("least", "twelve", "twelve"),
        ("unknown", "12", "12"),
        ("amount", 12, 12),
        ("tags", ["1"], ["1"]),
    ],
)
def test_texts_take_the_type_their_schema_asks_for(name: str, written: JsonValue, meant: JsonValue) -> None:
    value = normal({"tool": "convert", "inputs": [{"name": name, "value": written}]}).steps[0].args[name]
    assert (value, type(value)) == (meant, type(meant))


@pytest.mark.parametrize(
    ("written", "said", "meant"),
    [
        ("red, green", "tag it red and green", ["red", "green"]),
        ("red; green", "Tags: Red; GREEN", ["red", "green"]),
        ("red, blue", "tag it red and green", "red, blue"),
        ("red, green", "tag it reddish and green", "red, green"),
        ("red,", "tag it red", "red,"),
        ("Paris, Texas", "Weather in Paris, Texas", "Paris, Texas"),
        ("Paris,Texas", "Weather in paris , texas and Rome", "Paris,Texas"),
        ("Texas, Paris", "Weather in Paris, Texas", "Texas, Paris"),
        ("Paris, Texas, Rome", "Weather in Paris, Texas and Rome", "Paris, Texas, Rome"),
        ("Smith, John", "Invite Smith, John", "Smith, John"),
        ("Miller, Sons & Co", "write to Miller, Sons & Co", "Miller, Sons & Co"),
        ("Ann, Bo", "Invite Ann and Bo", ["Ann", "Bo"]),
        ("a@x.example, b@x.example", "mail a@x.example, b@x.example", ["a@x.example", "b@x.example"]),
        ("@ann, @bo", "assign @ann, @bo", ["@ann", "@bo"]),
        ("red, green", "", "red, green"),
    ],
)
def test_a_text_is_several_values_where_the_user_names_each(written: str, said: str, meant: JsonValue) -> None:
    step: JsonObject = {"tool": "convert", "inputs": [{"name": "tags", "value": written}]}
    assert normalise_plan({"steps": [step]}, CATALOGUE, said=said).steps[0].args["tags"] == meant


@pytest.mark.parametrize("name", ["digits", "amount"])
def test_a_number_of_thousands_of_digits_ends_in_no_crash(name: str) -> None:
    step: JsonObject = {"tool": "convert", "inputs": [{"name": name, "value": "9" * 5000}]}
    try:
        value = normal(step).steps[0].args[name]
    except PlanInvalidError:
        return
    assert value == "9" * 5000


def test_a_number_without_bounds_does_not_become_infinite() -> None:
    value = normal({"tool": "convert", "inputs": [{"name": "amount", "value": "1e999"}]}).steps[0].args["amount"]
    assert value != float("inf")


@pytest.mark.parametrize("name", ["tags", "options"])
def test_brackets_without_end_in_a_value_end_in_no_crash(name: str) -> None:
    deep = ("[" if name == "tags" else '{"a":') * 30_000
    step: JsonObject = {"tool": "convert", "inputs": [{"name": name, "value": deep}]}
    try:
        value = normal(step).steps[0].args[name]
    except PlanInvalidError:
        return
    assert value == deep


def test_inputs_as_one_text_end_in_no_crash_however_deep() -> None:
    assert problems({"tool": "convert", "inputs": "[" * 30_000})


@pytest.mark.parametrize(
    ("inputs", "args"),
    [
        ([{"name": "expression", "value": "1"}], {"expression": "1"}),
        ([{"expression": "1"}], {"expression": "1"}),
        ({"expression": "1"}, {"expression": "1"}),
        ({"name": "expression", "value": "1"}, {"expression": "1"}),
        ('{"expression": "1"}', {"expression": "1"}),
        ([], {}),
        (None, {}),
        ("", {}),
    ],
)
def test_forms_of_inputs(inputs: JsonValue, args: JsonObject) -> None:
    assert normal({"tool": "calculator", "inputs": inputs}).steps[0].args == args


def test_a_skill_takes_a_plain_text_as_its_task() -> None:
    assert normal({"tool": "deep_research", "inputs": "find it"}).steps[0].args == {"task": "find it"}


def test_what_stands_around_the_steps() -> None:
    plan = normal({}, goal=" g ", language="sv", reasoning="r" * 3000, answer_tier="high")
    assert (plan.goal, plan.language, len(plan.reasoning), plan.answer_tier) == ("g", "sv", 2000, "high")
    bare = normal({"intent": "i" * 900, "tier": "huge"}, answer_tier="medium", language="")
    assert (bare.goal, bare.language, bare.reasoning, bare.answer_tier) == ("", "en", "", None)
    assert (len(bare.steps[0].intent), bare.steps[0].tier) == (500, None)


@pytest.mark.row("S003-34")
@pytest.mark.parametrize(
    ("call", "args"),
    [
        ("calculator", {}),
        ('calculator({"expression": "6*7"})', {"expression": "6*7"}),
        ("calculator(expression='6*7')", {"expression": "6*7"}),
        ({"name": "calculator", "arguments": {"expression": "6*7"}}, {"expression": "6*7"}),
    ],
)
def test_steps_in_the_words_step_id_description_and_tool_call(call: JsonValue, args: JsonObject) -> None:
    step: JsonObject = {"step_id": 1, "description": "Work it out", "tool_call": call, "status": "pending"}
    (read,) = normal(step).steps
    assert (read.id, read.tool, read.args, read.intent) == ("s1", "calculator", args, "Work it out")


@pytest.mark.parametrize(
    "call", ["calculator(", "calculator(open('x'))", "calculator(*x)", "f(" * 5_000, 3, None, {}, []]
)
def test_what_is_no_call_is_left_to_the_check_of_names(call: JsonValue) -> None:
    (read,) = normal({"step_id": 1, "tool_call": call}).steps
    assert (read.tool != "calculator", read.args) == (True, {})


def test_a_call_beside_a_tool_means_two_things() -> None:
    assert problems({"tool": "calculator", "tool_call": "calculator"}) == [
        'step 1 has "tool" twice (as "tool_call")',
    ]  # fmt: skip
