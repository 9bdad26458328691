"""`ToolValidationPipeline`: every deterministic check of a tool's code. All errors are collected with their stage."""

import ast
import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pydantic import BaseModel

from agent.core.models import JsonObject
from agent.tools import build_flat_schema
from gateway.features.studio.engine.errors import ValidationError
from gateway.features.studio.engine.generated_tools.identifiers import sanitize_identifier
from gateway.features.studio.engine.generated_tools.io_models import IoModels, ModelError, is_model_class, read_models
from gateway.features.studio.engine.generated_tools.models import HOST_FUNCTIONS, MAX_CODE_CHARS, Manifest
from gateway.features.studio.engine.generated_tools.source_rules import CodeFault, check_nodes, check_source
from gateway.features.studio.engine.generated_tools.source_text import check_visibility

_PARSE_ERRORS = (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError)


@dataclass(slots=True)
class CheckedTool:
    """A module as the checks have read it. It can be run only if there are no errors."""

    name: str
    code: str
    errors: list[ValidationError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tree: ast.Module = field(default_factory=lambda: ast.Module([], []))
    models: IoModels = field(default_factory=IoModels)
    description: str = ""
    """The docstring."""
    input_name: str = ""
    output_name: str = ""
    host_functions: tuple[str, ...] = ()

    @property
    def Input(self) -> type[BaseModel]:  # noqa: N802 - a class, as in `TypedTool`
        """The model of the arguments."""
        return self.models.types[self.input_name]

    @property
    def Output(self) -> type[BaseModel]:  # noqa: N802 - likewise
        """The model of the result."""
        return self.models.types[self.output_name]

    @property
    def input_schema(self) -> JsonObject:
        """The flat JSON schema of the arguments."""
        return build_flat_schema(self.Input)

    def add(self, stage: str, message: str) -> None:
        """Adds an error that another version of the code can avoid."""
        self.errors.append(ValidationError(f"{stage}: {message}", stage))

    def require_valid(self) -> None:
        """Raises a `ValidationError` that lists every error; its stage is that of the first."""
        if self.errors:
            problems = [error.message for error in self.errors]
            raise ValidationError("; ".join(problems), self.errors[0].stage, problems=problems)


class ToolValidationPipeline:
    """Checks the code of tools. The code is parsed and compiled, never run."""

    def check(self, name: str, code: str, manifest: Manifest) -> CheckedTool:
        """Reads the code and collects all errors."""
        tool = CheckedTool(name, code)
        self._check_identifier(tool)
        tool.errors += [ValidationError(f"{one.stage}: {one.message}", one.stage) for one in check_visibility(code)]
        if not self._parse(tool):
            return tool
        tool.errors += [ValidationError(f"{one.stage}: {one.message}", one.stage) for one in check_source(tool.tree)]
        self._read_models(tool)
        function = self._find_function(tool)
        if function is not None:
            self._check_function(tool, function)
            self._check_interface(tool, function)
            tool.warnings += _list_warnings(tool.tree, function)
        self._check_manifest(tool, manifest)
        return tool

    async def validate(self, name: str, code: str, manifest: Manifest | None = None) -> list[ValidationError]:
        """All errors of the code."""
        return self.check(name, code, manifest or Manifest()).errors

    def _check_identifier(self, tool: CheckedTool) -> None:
        try:
            if (plain := sanitize_identifier(tool.name)) != tool.name:
                tool.add("identifier", f"{tool.name!r} is not the name of a function; use {plain!r}")
        except ValidationError as error:
            tool.errors.append(ValidationError(f"identifier: {error.message}", "identifier"))

    def _parse(self, tool: CheckedTool) -> bool:
        if len(tool.code) > MAX_CODE_CHARS:
            tool.add("syntax", f"the code has {len(tool.code):,} characters; at most {MAX_CODE_CHARS:,} are allowed")
            return False
        tree, finding = parse_code(tool.code)
        if finding is not None:
            tool.add(finding.stage, finding.message)
        if tree is None:
            return False
        tool.tree = tree
        return True

    def _read_models(self, tool: CheckedTool) -> None:
        classes = [node for node in tool.tree.body if isinstance(node, ast.ClassDef) and is_model_class(node)]
        try:
            tool.models = read_models(classes)
        except ModelError as error:
            tool.add("schema", str(error))

    def _find_function(self, tool: CheckedTool) -> ast.AsyncFunctionDef | ast.FunctionDef | None:
        functions = [
            node
            for node in tool.tree.body
            if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef) and node.name == tool.name
        ]
        if len(functions) == 1:
            return functions[0]
        if functions:
            tool.add("function", f"the function {tool.name!r} is defined {len(functions)} times; define it once")
        elif any(_binds(node, tool.name) for node in tool.tree.body):
            tool.add("callable", f"{tool.name!r} is not a function; write `async def {tool.name}(...)`")
        else:
            there = [node.name for node in tool.tree.body if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)]
            tool.add("function", f"there is no function {tool.name!r}; the code defines {', '.join(there) or 'none'}")
        return None

    def _check_function(self, tool: CheckedTool, node: ast.AsyncFunctionDef | ast.FunctionDef) -> None:
        tool.description = (ast.get_docstring(node) or "").strip()
        if not tool.description:
            tool.add("docstring", f"{tool.name} has no docstring; it becomes the description of the tool")
        if not isinstance(node, ast.AsyncFunctionDef):
            tool.add("async", f"{tool.name} must be `async def`")
        if any(isinstance(one, ast.Yield | ast.YieldFrom) for one in _walk_own(node)):
            tool.add("function", f"{tool.name} must return its result, not yield it")
        if node.decorator_list:
            tool.add("function", f"{tool.name} must have no decorators")

    def _check_interface(self, tool: CheckedTool, node: ast.AsyncFunctionDef | ast.FunctionDef) -> None:
        arguments = node.args
        plain = len(arguments.args) == 1 and not (
            arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg or arguments.defaults
        )
        annotation = arguments.args[0].annotation if plain else None
        tool.input_name = _get_name(annotation)
        if tool.input_name not in tool.models.types:
            tool.add("parameters", f"{tool.name} takes one argument, whose type is a Pydantic model of this module")
        tool.output_name = _get_name(node.returns)
        if tool.output_name not in tool.models.types:
            tool.add("return_type", f"{tool.name} must return a Pydantic model of this module, as its annotation says")

    def _check_manifest(self, tool: CheckedTool, manifest: Manifest) -> None:
        used = {node.id for node in ast.walk(tool.tree) if isinstance(node, ast.Name)} & HOST_FUNCTIONS.keys()
        tool.host_functions = tuple(sorted(used))
        for name in tool.host_functions:
            if not getattr(manifest, HOST_FUNCTIONS[name]):
                tool.add("manifest", f"{name} is used, but the permissions name no {HOST_FUNCTIONS[name]}")


def parse_code(code: str) -> tuple[ast.Module | None, CodeFault | None]:
    """The syntax tree, and why the code cannot be parsed (`syntax`) or compiled (`compile`)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(code)
        except _PARSE_ERRORS as error:
            return None, CodeFault("syntax", f"the code cannot be parsed: {_describe(error)}")
        try:
            compile(code, "<tool>", "exec", dont_inherit=True)
        except _PARSE_ERRORS as error:
            return tree, CodeFault("compile", f"the code cannot be compiled: {_describe(error)}")
    return tree, None


def check_test_case(case: str, tool: CheckedTool, number: int) -> list[ValidationError]:
    """Describes what is wrong with a test: it awaits the tool and asserts something, under the rules of code."""
    tree, finding = parse_code(f"async def test():\n{indent_statements(case)}")
    if tree is None or finding is not None:
        reason = finding.message if finding is not None else ""
        return [ValidationError(f"tests: test {number}: {reason}", "tests")]
    known_words = frozenset({tool.name, "record", *tool.models.types})
    problems = [*check_visibility(case), *check_nodes(tree, known_words)]
    errors = [ValidationError(f"tests: test {number}: {one.message}", "tests") for one in problems]
    awaited = {
        node.value.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Await) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
    }
    if tool.name not in awaited:
        errors.append(ValidationError(f"tests: test {number} does not call `await {tool.name}(...)`", "tests"))
    if not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        errors.append(ValidationError(f"tests: test {number} asserts nothing", "tests"))
    return errors


def build_stub(tool: CheckedTool) -> CheckedTool:
    """The interface with a function that always returns an empty result."""
    tree = copy.deepcopy(tool.tree)
    for node in tree.body:
        if isinstance(node, ast.AsyncFunctionDef) and node.name == tool.name:
            node.body = ast.parse(f"return {tool.models.build_empty(tool.output_name)}").body
    return replace(tool, tree=tree)


def indent_statements(case: str) -> str:
    """The statements as the body of a function. Lines within texts keep their indentation."""
    try:
        body = ast.unparse(ast.parse(case.strip("\n")))
    except _PARSE_ERRORS:
        # Statements with `await` are no module: they are indented as they stand.
        body = case.strip("\n")
    return "\n".join(f"    {line}" for line in body.split("\n")) or "    pass"


def _list_warnings(tree: ast.Module, function: ast.AsyncFunctionDef | ast.FunctionDef) -> list[str]:
    """The points that a reviewer should look at; nothing here keeps a tool from being used."""
    nodes = list(ast.walk(tree))
    handles = any(isinstance(node, ast.Try) for node in nodes)
    warnings = []
    if any(isinstance(node, ast.Raise) for node in _walk_own(function)) and not handles:
        warnings.append("errors are raised; returning them in the model gives the caller more information")
    if any(isinstance(node, ast.Await) for node in nodes) and not handles:
        warnings.append("failures of what it asks the gateway for are not handled")
    if not any(isinstance(node, ast.If | ast.Try | ast.Match | ast.IfExp) for node in _walk_own(function)):
        warnings.append("the input is not checked before it is used")
    return warnings


def _walk_own(function: ast.AST) -> Sequence[ast.AST]:
    """The nodes of a function without those of functions inside of it."""
    own_nodes: list[ast.AST] = []
    waiting: list[ast.AST] = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        own_nodes.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return own_nodes


def _binds(node: ast.stmt, name: str) -> bool:
    if isinstance(node, ast.ClassDef):
        return node.name == name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _get_name(annotation: ast.expr | None) -> str:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value
    return annotation.id if isinstance(annotation, ast.Name) else ""


def _describe(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        text = (error.text or "").strip()
        return f"line {error.lineno}: {error.msg}" + (f" ({text[:120]})" if text else "")
    return f"{type(error).__name__}: {str(error)[:200]}"
