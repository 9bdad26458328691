"""References to earlier results: found, resolved, refused, renamed."""

import pytest
from pydantic import JsonValue

from agent.core.errors import ReferenceMissingError
from agent.core.events import StepOutput
from agent.core.models import JsonObject
from agent.core.plan_references import (
    SPLICE_CHARS,
    describe_references,
    find_references,
    format_spliced_text,
    list_references,
    rename_references,
    resolve_references,
    set_apart_outside_values,
    unify_references,
)

FILE = '{"output": "dist", "result": "r", "text": "inner", "name": "x", "value": {"n": 3}}'
JSON_TEXT = '{"items": [{"n": 1}], "text": "hi", "note": "[draft] x"}'
PAGES: JsonValue = {
    "items": [{"name": "alpha", "tags": ["x", "y"]}, {"name": "beta", "tags": []}],
    "total": 2,
    "open-now": True,
    "nothing": None,
}
OUTPUTS = {
    "s1": StepOutput(value=PAGES, text="two pages"),
    "s2": StepOutput(value="plain words", text="plain words"),
    "s3": StepOutput(value={"text": "inner", "output": {"n": 1}}, text="outer"),
    "s4": StepOutput(value=[[1, 2], [3]], text="a matrix", tainted=True),
    "fetch-it": StepOutput(text="only text"),
    "s5": StepOutput(value={"result": "kept"}, text="kept"),
    "s6": StepOutput(value={"result": [{"n": 1}, {"n": 2}]}, text='{"n": 1}\n{"n": 2}'),
    "s7": StepOutput(value={"expression": "6*7", "value": "42"}, text="6*7 = 42"),
    "s8": StepOutput(value={"value": 21, "unit": "C"}, text="21 degrees Celsius"),
    "json": StepOutput(text=JSON_TEXT),
    "file": StepOutput(text=FILE),
    "fields": StepOutput(value={"output": "dist", "text": "inner"}, text="the fields"),
    "list": StepOutput(text='[{"n": 1}]'),
    "wrapped": StepOutput(value={"result": JSON_TEXT}, text=JSON_TEXT),
    "nested": StepOutput(value={"body": '{"output": {"n": 3}}'}, text="nested"),
    "s10": StepOutput(value={"expression": "6*7", "value": {"re": 1}}),
}


def filled(value: JsonValue) -> JsonValue:
    return resolve_references({"x": value}, OUTPUTS.__getitem__).args["x"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("output.items[0].name", "alpha"),
        ("output.items[1].name", "beta"),
        ("output.items[0].tags[1]", "y"),
        ("items[0].tags", ["x", "y"]),
        ("result.total", 2),
        ("value.total", 2),
        (".total", 2),
        ("$.output.total", 2),
        ("total", 2),
        ("open-now", True),
        ("nothing", None),
        ("text", "two pages"),
        ("output", PAGES),
        ("", PAGES),
    ],
)
def test_a_path_leads_into_the_result(path: str, value: JsonValue) -> None:
    assert filled({"$from": "s1", "path": path}) == value


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ({"$from": "s1"}, PAGES),
        ({"$from": "$s2"}, "plain words"),
        ({"$from": "s2", "path": "output"}, "plain words"),
        ({"$from": "s2", "path": "output.text"}, "plain words"),
        ({"$from": "s3", "path": "text"}, "inner"),
        ({"$from": "s3", "path": "output.n"}, 1),
        ({"$from": "s4", "path": "[0][1]"}, 2),
        ({"$from": "fetch-it"}, "only text"),
        ({"$from": "fetch-it", "path": "output"}, "only text"),
        ("$s1", PAGES),
        ("  $s1.total ", 2),
        ("${s1.items[1]}", {"name": "beta", "tags": []}),
        ("${fetch-it}", "only text"),
    ],
)
def test_a_reference_that_is_the_whole_value_keeps_its_type(reference: JsonValue, value: JsonValue) -> None:
    assert filled(reference) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("about $s2 and $s1.items[0].name.", "about plain words and alpha."),
        ("total: ${s1.total}!", "total: 2!"),
        ("${s1.items[0].tags}; yes", '["x", "y"]; yes'),
        ("it costs $5, not $12", "it costs $5, not $12"),
        ("$s1x and $sum", "$s1x and $sum"),
        ("a $ sign", "a $ sign"),
    ],
)
def test_a_reference_inside_a_text_is_spliced_and_money_stays(text: str, expected: str) -> None:
    assert filled(text) == expected


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("$s5", "kept"),
        ("$s5.output", "kept"),
        ("$s5.result", "kept"),
        ("$s5.value", "kept"),
        ({"$from": "s5", "path": "text"}, "kept"),
        ("$s6", [{"n": 1}, {"n": 2}]),
        ("$s6[1].n", 2),
        ("$s6.output[1].n", 2),
        ("$s6.result[1].n", 2),
        ("say $s5 and ${s5.output}", "say kept and kept"),
        ("say $s6[0]", 'say {"n": 1}'),
    ],
)
def test_what_a_server_only_wrapped_to_send_it_is_taken_out(reference: JsonValue, value: JsonValue) -> None:
    assert filled(reference) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$s7 + 1", "42 + 1"),
        ("$s7.output + 1", "42 + 1"),
        ("about $s1", "about two pages"),
        ("it is $s8", "it is 21 degrees Celsius"),
        ("it is $s10", 'it is {"expression": "6*7", "value": {"re": 1}}'),
    ],
)
def test_a_whole_result_inside_a_text_is_what_people_are_shown_of_it(text: str, expected: str) -> None:
    assert filled(text) == expected


def test_an_argument_that_takes_only_text_gets_a_whole_result_as_text() -> None:
    args: JsonObject = {"a": "$s1", "b": "$s7", "c": {"$from": "s5"}, "d": "$s1.total", "e": "$s1", "f": ["$s1"]}
    assert resolve_references(args, OUTPUTS.__getitem__, texts={"a", "b", "c", "d", "f"}).args == {
        "a": "two pages", "b": "42", "c": "kept", "d": 2, "e": PAGES, "f": [PAGES],
    }  # fmt: skip


def test_references_are_filled_at_any_depth() -> None:
    args: JsonObject = {
        "list": ["$s2", [{"$from": "s1", "path": "total"}]],
        "deep": {"a": {"b": "n=$s1.total"}},
        "n": 7,
    }
    assert resolve_references(args, OUTPUTS.__getitem__).args == {
        "list": ["plain words", [2]],
        "deep": {"a": {"b": "n=2"}},
        "n": 7,
    }


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("output.pages", "step 's1' has nothing at 'output.pages': it holds items, total, open-now, nothing"),
        ("items[2]", "it holds a list of 2"),
        ("items.name", "it holds a list of 2"),
        ("total.more", "it holds a plain value"),
        ("total[0]", "it holds a plain value"),
        ("[0]", "it holds items, total, open-now, nothing"),
        ("items[-1]", "the path 'items[-1]' into step 's1' cannot be read"),
        ("items[*].name", "cannot be read"),
        ("output['items']", "cannot be read"),
        ("items[0]name", "cannot be read"),
        ("a..b", "cannot be read"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused_with_what_is_there(path: str, message: str) -> None:
    with pytest.raises(ReferenceMissingError) as caught:
        filled({"$from": "s1", "path": path})
    assert message in caught.value.message


@pytest.mark.parametrize("reference", [{"$from": "s9"}, "$s9", "see ${gone.text}"])
def test_a_step_without_a_result_cannot_be_referred_to(reference: JsonValue) -> None:
    with pytest.raises(ReferenceMissingError, match="has no result to refer to"):
        filled(reference)


def test_what_rests_on_an_outside_source_is_tainted() -> None:
    assert resolve_references({"x": "see $s4[1]"}, OUTPUTS.__getitem__).tainted
    assert not resolve_references({"x": "see $s2"}, OUTPUTS.__getitem__).tainted


def test_the_steps_used_are_told_once_each_in_order() -> None:
    resolved = resolve_references({"a": "$s2 $s1 $s2", "b": {"$from": "s4"}}, OUTPUTS.__getitem__)
    assert resolved.used == ("s2", "s1", "s4")


@pytest.mark.parametrize(
    ("args", "ids"),
    [
        ({"a": "$s1.x ${other}", "b": [{"$from": "s7"}]}, {"s1", "other", "s7"}),
        ({"a": {"$from": "s1", "path": "$s2"}}, {"s1"}),
        ({"a": {"$from": "s1", "note": "an ordinary object"}}, set()),
        ({"a": {"$from": 1}}, set()),
        ({"a": "$5 or $sum or $S1"}, set()),
        ({"a": 1, "b": None, "c": True}, set()),
    ],
)
def test_references_are_found(args: JsonObject, ids: set[str]) -> None:
    assert find_references(args) == ids


def test_references_are_found_with_their_paths() -> None:
    found = list_references("from $s1.output.items[0] to ${s2[1]}")
    assert [(reference.step_id, reference.path) for reference in found] == [("s1", ".output.items[0]"), ("s2", "[1]")]


@pytest.mark.parametrize(
    ("value", "renamed"),
    [
        ("$s1", "${s4}"),
        ("see $s1.items[0] and $s2", "see ${s4.items[0]} and $s2"),
        ("${s1}", "${s4}"),
        ({"$from": "s1", "path": "x"}, {"$from": "s4", "path": "x"}),
        ({"$from": "$s1"}, {"$from": "s4"}),
        ({"a": ["$s1", 3]}, {"a": ["${s4}", 3]}),
        ("$s10 costs $1", "$s10 costs $1"),
        (None, None),
    ],
)
def test_references_follow_a_step_to_its_new_id(value: JsonValue, renamed: JsonValue) -> None:
    assert rename_references(value, {"s1": "s4"}) == renamed


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("${json.output.items[0].n}", 1),
        ("${json.items}", [{"n": 1}]),
        ("${json.output.text}", "hi"),
        ("${json.note}", "[draft] x"),
        ("${json}", JSON_TEXT),
        ("${json.output}", JSON_TEXT),
        ("${list.output[0].n}", 1),
        ("${wrapped.output.items[0].n}", 1),
        ("${wrapped.items[0].n}", 1),
        ("${wrapped}", JSON_TEXT),
        ("${nested.body.output.n}", 3),
        ("${file}", FILE),
        ("${file.output}", FILE),
        ("${file.result}", FILE),
        ("${file.value}", FILE),
        ("${file.text}", FILE),
        ("${file.name}", "x"),
        ("${file.output.name}", "x"),
        ("${file.output.output}", "dist"),
        ("${file.value.n}", 3),
        ("${fields.output}", "dist"),
        ("${fields.text}", "inner"),
    ],
)
def test_a_path_leads_into_a_text_that_is_json(reference: str, value: JsonValue) -> None:
    assert filled(reference) == value


def test_a_path_that_a_json_text_has_not_is_refused_with_what_is_there() -> None:
    with pytest.raises(ReferenceMissingError, match="it holds items, text, note"):
        filled("${json.output.people}")


@pytest.mark.parametrize(
    ("value", "same"),
    [
        ("$s1.output.email", "${s1.output.email}"),
        ({"$from": "s1", "path": "output.email"}, "${s1.output.email}"),
        ({"$from": "$s1", "path": "$.output"}, "${s1.output}"),
        ({"a": ["see $s1"]}, {"a": ["see ${s1}"]}),
        ({"$literal": "$s1"}, {"$literal": "$s1"}),
        ("$5", "$5"),
    ],
)
def test_references_are_compared_whatever_their_form(value: JsonValue, same: JsonValue) -> None:
    assert unify_references(value) == unify_references(same) == same


def test_a_long_result_is_cut_where_it_is_spliced() -> None:
    assert format_spliced_text("x" * SPLICE_CHARS) == "x" * SPLICE_CHARS
    assert format_spliced_text("x" * (SPLICE_CHARS + 1)) == "x" * SPLICE_CHARS + " [cut]"
    assert format_spliced_text({"ö": 1}) == '{"ö": 1}'


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"$from": "s1"}, "the result of step 1 (search_files)"),
        (
            {"$from": "$s1", "path": "output.items[0].title"},
            "the result of step 1 (search_files): title of entry 1 of items",
        ),
        ([{"$from": "s1", "path": "text"}], "the result of step 1 (search_files): text"),
        ([{"$from": "s1"}, "and"], ["the result of step 1 (search_files)", "and"]),
        ({"$from": "s9", "path": "output"}, "an earlier result"),
        ({"$from": "s1", "path": "items[*]"}, "the result of step 1 (search_files): 'items[*]'"),
        ("Hello $s1.output.name, $5", "Hello [the result of step 1 (search_files): name], $5"),
        ({"to": {"$literal": "${HOME}"}}, {"to": "${HOME}"}),
        ([], []),
        (7, 7),
    ],
)
def test_references_are_described_in_words(value: JsonValue, words: JsonValue) -> None:
    names = {"s1": "the result of step 1 (search_files)"}
    assert describe_references(value, names, "an earlier result") == words


@pytest.mark.parametrize(
    ("task", "named", "values"),
    [
        ("Sum up $s4 in $s7.value words", "Sum up ${s4} in 42 words", {"${s4}": "a matrix"}),
        ({"$from": "s4"}, "${s4}", {"${s4}": "a matrix"}),
        (["Sum up", {"$from": "s4"}, 3], ["Sum up", "${s4}", 3], {"${s4}": "a matrix"}),
        ({"of": "$s4", "as": {"$literal": "$s4"}}, {"of": "${s4}", "as": "$s4"}, {"${s4}": "a matrix"}),
        ({"$literal": "$s4"}, "$s4", {}),
        ("Nothing", "Nothing", {}),
    ],
)
def test_results_from_outside_are_set_apart(task: JsonValue, named: JsonValue, values: dict[str, str]) -> None:
    assert set_apart_outside_values(task, OUTPUTS.__getitem__) == (named, values)
