"""The Pydantic models of a generated tool, read from its syntax tree: no code of a tool runs to get them.

The gateway validates arguments and results with models built here. In the sandbox plain classes stand in for them.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import SchemaError

MAX_MODELS = 20
MAX_FIELDS = 50
_SCALARS: dict[str, Any] = {"str": str, "int": int, "float": float, "bool": bool}
_FIELD_OPTIONS = {
    "default", "description", "ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern", "examples",
    "title",
}  # fmt: skip
_FACTORIES: dict[str, Any] = {"list": list, "dict": dict}
_ALLOWED = "str, int, float, bool, list[...], dict[str, ...], Literal[...], X | None, and models defined above"


class ModelError(Exception):
    """Raised for a model that cannot be read; `line` is where."""

    def __init__(self, message: str, node: ast.AST) -> None:
        super().__init__(f"line {getattr(node, 'lineno', 0)}: {message}")


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field: its type, the code that makes its value from JSON, and the code of its default (None: required)."""

    name: str
    annotation: Any
    options: Mapping[str, Any]
    from_json: str
    default_code: str | None


@dataclass(slots=True)
class IoModels:
    """The models of a module in the order of their definition."""

    fields: dict[str, list[FieldSpec]] = field(default_factory=dict)
    types: dict[str, type[BaseModel]] = field(default_factory=dict)

    def build_stand_in(self, name: str) -> str:
        """The source of the class that stands for a model in the sandbox."""
        specs = self.fields[name]
        parameters = "".join(f", {spec.name}" if spec.default_code is None else f", {spec.name}=..." for spec in specs)
        lines = [f"class {name}:"]
        lines.append(f"    def __init__(self{', *' if specs else ''}{parameters}):")
        lines += [f"        self.{spec.name} = {_format_initial_value(spec)}" for spec in specs] or ["        pass"]
        dumped = ", ".join(f"{spec.name!r}: stepgate_plain(self.{spec.name})" for spec in specs)
        lines += ["    def model_dump(self):", f"        return {{{dumped}}}"]
        lines += [
            "    def __eq__(self, other):",
            f"        return isinstance(other, {name}) and self.model_dump() == other.model_dump()",
            "    def __repr__(self):",
            f"        return {name + '('!r} + repr(self.model_dump()) + ')'",
        ]
        made = ", ".join(f"{spec.name}={spec.from_json.format(f'data[{spec.name!r}]')}" for spec in specs)
        lines += [f"def stepgate_make_{name}(data):", f"    return {name}({made})"]
        return "\n".join(lines)

    def build_empty(self, name: str) -> str:
        """The code of an instance whose required fields are empty: "", 0, None, [] and so on."""
        given = [
            f"{spec.name}={self._build_empty_value(spec.annotation)}"
            for spec in self.fields[name]
            if spec.default_code is None
        ]
        return f"{name}({', '.join(given)})"

    def _build_empty_value(self, annotation: Any) -> str:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return self.build_empty(annotation.__name__)
        origin, parts = get_origin(annotation), get_args(annotation)
        if origin is Literal:
            return repr(parts[0])
        if origin in (Union, UnionType):
            return "None" if NoneType in parts else self._build_empty_value(parts[0])
        return repr((origin or annotation)()) if annotation is not NoneType else "None"


def read_models(classes: Sequence[ast.ClassDef]) -> IoModels:
    """Reads the models. Raises `ModelError`."""
    models = IoModels()
    for node in classes:
        if len(models.types) >= MAX_MODELS:
            raise ModelError(f"there are more than {MAX_MODELS} models", node)
        if node.name in models.types:
            raise ModelError(f"there are two models {node.name!r}", node)
        specs = [_read_field(one, models) for one in _list_fields(node)]
        names = [spec.name for spec in specs]
        if len(names) > MAX_FIELDS or len(set(names)) < len(names):
            raise ModelError(f"{node.name} has more than {MAX_FIELDS} fields, or two of one name", node)
        models.fields[node.name] = specs
        models.types[node.name] = _create_model(node, specs)
    return models


def is_model_class(node: ast.AST) -> bool:
    """Whether a node defines a Pydantic model."""
    return isinstance(node, ast.ClassDef) and any(
        isinstance(base, ast.Name) and base.id == "BaseModel" for base in node.bases
    )


def _create_model(node: ast.ClassDef, specs: Sequence[FieldSpec]) -> type[BaseModel]:
    definitions: dict[str, Any] = {spec.name: (spec.annotation, Field(**spec.options)) for spec in specs}
    try:
        return create_model(
            node.name, __config__=ConfigDict(extra="forbid"), __doc__=ast.get_docstring(node), **definitions
        )
    except (PydanticUserError, PydanticSchemaGenerationError, SchemaError, NameError, TypeError, ValueError) as error:
        raise ModelError(f"{node.name} is not a usable model: {str(error)[:300]}", node) from error


def _list_fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    if len(node.bases) != 1 or node.keywords or node.decorator_list:
        raise ModelError(f"{node.name}: a model has BaseModel as its only base, no keywords and no decorators", node)
    fields = []
    for position, one in enumerate(node.body):
        is_docstring = position == 0 and isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            fields.append(one)
        elif not is_docstring and not isinstance(one, ast.Pass):
            raise ModelError(f"{node.name}: a model has only fields with types; no methods and validators", one)
    return fields


def _read_field(node: ast.AnnAssign, models: IoModels) -> FieldSpec:
    assert isinstance(node.target, ast.Name)
    name = node.target.id
    if name.startswith(("_", "model_")) or hasattr(BaseModel, name):
        raise ModelError(f"the field {name!r} has a reserved name", node)
    annotation, from_json = _read_type(node.annotation, models)
    options, default_code = _read_default(node.value)
    return FieldSpec(name, annotation, options, from_json, default_code)


def _read_default(node: ast.expr | None) -> tuple[dict[str, Any], str | None]:
    """The options of `Field` and the code of the default; None without one."""
    if node is None:
        return {}, None
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Field"):
        return {"default": _read_literal(node)}, ast.unparse(node)
    if len(node.args) > 1:
        raise ModelError("Field has at most one positional argument, the default", node)
    options: dict[str, Any] = {}
    code: str | None = None
    if node.args and not _is_ellipsis(node.args[0]):
        options["default"], code = _read_literal(node.args[0]), ast.unparse(node.args[0])
    for keyword in node.keywords:
        if keyword.arg == "default_factory" and isinstance(keyword.value, ast.Name) and keyword.value.id in _FACTORIES:
            options["default_factory"], code = _FACTORIES[keyword.value.id], f"{keyword.value.id}()"
        elif keyword.arg == "default" and _is_ellipsis(keyword.value):
            continue
        elif keyword.arg in _FIELD_OPTIONS:
            options[keyword.arg] = _read_literal(keyword.value)
            code = ast.unparse(keyword.value) if keyword.arg == "default" else code
        else:
            allowed = ", ".join(sorted(_FIELD_OPTIONS))
            raise ModelError(f"Field has no option {keyword.arg!r} here; allowed: {allowed}, default_factory", node)
    return options, code


def _read_literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ModelError("defaults and options of fields are written as plain values", node) from error


def _read_type(node: ast.expr, models: IoModels, depth: int = 0) -> tuple[Any, str]:
    """A type and a format string with the code that makes a value of it from the JSON value `{0}`."""
    if depth > 8:
        raise ModelError("the type is nested too deeply", node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in models.types:
        return models.types[node.value], f"stepgate_make_{node.value}({{0}})"
    if isinstance(node, ast.Constant) and node.value is None:
        return NoneType, "{0}"
    if isinstance(node, ast.Name):
        return _read_named_type(node, models)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _read_union([node.left, node.right], models, depth)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return _read_generic(node, node.value.id, models, depth)
    raise ModelError(f"the type {ast.unparse(node)!r} cannot be used; allowed: {_ALLOWED}", node)


def _read_named_type(node: ast.Name, models: IoModels) -> tuple[Any, str]:
    if node.id in _SCALARS:
        return _SCALARS[node.id], "{0}"
    if node.id in models.types:
        return models.types[node.id], f"stepgate_make_{node.id}({{0}})"
    if node.id in ("list", "dict"):
        raise ModelError(f"say what {node.id} contains, such as list[str] or dict[str, float]", node)
    raise ModelError(f"the type {node.id!r} cannot be used; allowed: {_ALLOWED}", node)


def _read_generic(node: ast.Subscript, name: str, models: IoModels, depth: int) -> tuple[Any, str]:
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name in ("list", "List") and len(parts) == 1:
        item, code = _read_type(parts[0], models, depth + 1)
        made = "{0}" if code == "{0}" else f"[{code.format('item')} for item in {{0}}]"
        return list[item], made  # type: ignore[valid-type]
    if name in ("dict", "Dict") and len(parts) == 2:
        if not (isinstance(parts[0], ast.Name) and parts[0].id == "str"):
            raise ModelError("the keys of a dict are str", node)
        item, code = _read_type(parts[1], models, depth + 1)
        made = "{0}" if code == "{0}" else f"dict([(key, {code.format('item')}) for key, item in {{0}}.items()])"
        return dict[str, item], made  # type: ignore[valid-type]
    if name == "Optional" and len(parts) == 1:
        return _read_union([parts[0], ast.Constant(None)], models, depth)
    if name == "Union":
        return _read_union(parts, models, depth)
    if name == "Literal":
        values = [_read_literal(part) for part in parts]
        if not values or not all(isinstance(value, str | int | bool) for value in values):
            raise ModelError("Literal contains texts or whole numbers", node)
        return Literal[tuple(values)], "{0}"
    raise ModelError(f"the type {ast.unparse(node)!r} cannot be used; allowed: {_ALLOWED}", node)


def _read_union(parts: Sequence[ast.expr], models: IoModels, depth: int) -> tuple[Any, str]:
    read = [_read_type(part, models, depth + 1) for part in parts]
    codes = [code for _, code in read if code != "{0}"]
    if not codes:
        return Union[tuple(one for one, _ in read)], "{0}"  # noqa: UP007 - the members are known at run time only
    if len(codes) > 1 or any(one is not NoneType for one, code in read if code == "{0}"):
        raise ModelError("a model can be combined with None only", parts[0])
    inner = codes[0].format("{0}")
    return Union[tuple(one for one, _ in read)], f"(None if {{0}} is None else {inner})"  # noqa: UP007 - likewise


def _format_initial_value(spec: FieldSpec) -> str:
    if spec.default_code is None:
        return spec.name
    return f"{spec.default_code} if {spec.name} is ... else {spec.name}"


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
