"""Arguments that a schema declares in references, parts and forms, and those that it does not."""

import pytest

from agent.core.models import JsonObject
from agent.tools.declared_arguments import collect_arguments, iter_nested_schemas, list_undeclared_arguments

TEXT: JsonObject = {"type": "string"}
X: JsonObject = {"properties": {"x": TEXT}}
Y: JsonObject = {"properties": {"y": TEXT}}
NEEDS_X: JsonObject = {"required": ["x"]}


@pytest.mark.parametrize(
    ("schema", "undeclared"),
    [
        (X, ("y",)),  # JSON Schema would let it through, and most servers drop it in silence
        ({**X, "additionalProperties": False}, ("y",)),
        ({**X, "additionalProperties": True}, ()),
        ({**X, "additionalProperties": {}}, ()),
        ({**X, "unevaluatedProperties": TEXT}, ()),
        ({**X, "patternProperties": {"^y": {}}}, ()),
        ({**X, "required": ["x", "y"]}, ()),
        ({**X, "allOf": [Y]}, ()),
        ({**X, "allOf": [{**Y, "additionalProperties": True}]}, ()),
        ({**X, "anyOf": [NEEDS_X, Y]}, ()),
        ({**X, "if": NEEDS_X, "then": Y}, ()),
        ({**X, "dependentSchemas": {"x": Y}}, ()),
        ({"$ref": "#/$defs/both", "$defs": {"both": {"properties": {"x": TEXT, "y": TEXT}}}}, ()),
        ({"$ref": "#/$defs/one", "$defs": {"one": X}}, ("y",)),
    ],
)
@pytest.mark.parametrize("is_foreign", [True, False])
def test_an_argument_is_undeclared_unless_the_schema_names_or_allows_it(
    schema: JsonObject, undeclared: tuple[str, ...], is_foreign: bool
) -> None:
    assert list_undeclared_arguments(schema, ("x", "y"), is_foreign=is_foreign) == undeclared


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_a_foreign_tool_without_declarations_takes_any_argument(schema: JsonObject) -> None:
    assert list_undeclared_arguments(schema, ("x",), is_foreign=True) == ()
    assert list_undeclared_arguments(schema, ("x",), is_foreign=False) == ("x",)
    closed = {**schema, "additionalProperties": False}
    assert list_undeclared_arguments(closed, ("x",), is_foreign=True) == ("x",)


def test_what_may_follow_from_a_condition_is_declared_and_not_required() -> None:
    declared, required = collect_arguments({**X, "required": ["x"], "then": {**Y, "required": ["y"]}})
    assert [*declared] == ["x", "y"]
    assert required == ["x"]


def test_a_schema_that_refers_to_itself_is_walked_once() -> None:
    node: JsonObject = {"properties": {"next": {"$ref": "#/$defs/node"}, "url": {"format": "uri"}}}
    schema: JsonObject = {"properties": {"head": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    (argument,) = collect_arguments(schema)[0].values()
    assert [one for one in iter_nested_schemas(argument, schema) if "format" in one] == [{"format": "uri"}]
