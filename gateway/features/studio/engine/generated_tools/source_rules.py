"""Rules for the code of a generated tool: imports, names, attributes and constructs from allow-lists.

The sandbox is what keeps a tool from doing harm. These rules refuse early, with a message that a model can act on, what
could not work there, and what a person should never have to review.
"""

import ast
import builtins
import importlib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from string import Formatter

from gateway.features.studio.engine.generated_tools.models import HOST_FUNCTIONS

RESERVED_PREFIX = "stepgate_"
"""Names of the code that is put around a tool in the sandbox."""
_ALL = ("*",)
ALLOWED_IMPORTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "base64", "binascii", "bisect", "calendar", "cmath", "collections", "colorsys", "copy", "dataclasses",
            "datetime", "decimal", "difflib", "fractions", "functools", "hashlib", "heapq", "hmac", "html", "itertools",
            "json", "math", "numbers", "random", "re", "statistics", "string", "textwrap", "time", "typing",
            "unicodedata", "zlib", "zoneinfo",
        ),
        _ALL,
    ),
    "__future__": ("annotations",),
    "collections.abc": ("Callable", "Iterable", "Iterator", "Mapping", "Sequence"),
    "csv": ("reader", "DictReader", "writer", "DictWriter", "Sniffer", "QUOTE_ALL", "QUOTE_MINIMAL", "Error"),
    "enum": ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "auto"),
    "io": ("StringIO", "BytesIO"),
    "operator": ("itemgetter", "add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "eq", "lt", "le", "gt", "ge",
                 "xor", "and_", "or_"),
    "pydantic": ("BaseModel", "Field"),
    "struct": ("pack", "unpack", "calcsize", "unpack_from", "error"),
    "urllib.parse": ("quote", "quote_plus", "unquote", "unquote_plus", "urlencode", "urlparse", "urlsplit", "urljoin",
                     "urlunparse", "urlunsplit", "parse_qs", "parse_qsl"),
    "xml.etree.ElementTree": ("fromstring", "Element", "SubElement", "tostring", "ParseError"),
}  # fmt: skip
"""The modules that can be imported, some of them with some names only. Files, processes, the network, the import system
and the interpreter itself are not part of them.
"""
_BUILTINS_TEXT = (
    "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter float "
    "format frozenset hash hex int isinstance issubclass iter len list map max min next object oct ord pow print "
    "property range repr reversed round set slice sorted staticmethod str sum tuple zip NotImplemented Ellipsis"
)
_ALLOWED_BUILTINS = frozenset(_BUILTINS_TEXT.split()) | {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, Exception) and not issubclass(value, Warning)
}
_CLASS_METHODS = ("__init__", "__eq__", "__lt__", "__repr__", "__str__", "__hash__", "__len__", "__iter__", "__next__")
_FRAME_ATTRIBUTES = frozenset(
    name
    for kind in (
        types.FrameType, types.TracebackType, types.CodeType, types.GeneratorType, types.CoroutineType,
        types.AsyncGeneratorType,
    )
    for name in dir(kind)
    if "_" in name
)  # fmt: skip
"""Attributes that lead from a generator or an error to the interpreter's state."""
_REFUSED_NODES: dict[type[ast.AST], str] = {
    ast.Global: "global: give values as arguments and return them",
    ast.AsyncFor: "async for", ast.AsyncWith: "async with",
    ast.TryStar: "except*",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CodeFault:
    """Something that is wrong: the stage that refuses it, and a message with its line."""

    stage: str
    message: str


def check_source(tree: ast.Module) -> list[CodeFault]:
    """Everything that the rules refuse."""
    return [*_check_top_level(tree), *check_nodes(tree)]


def check_nodes(tree: ast.AST, known: frozenset[str] = frozenset()) -> list[CodeFault]:
    """Finds what the rules refuse anywhere in the tree: imports, names, attributes, constructs. `known` names exist
    besides those that the code defines.
    """
    rules = _Rules(tree, known)
    return list(dict.fromkeys(finding for node in ast.walk(tree) for finding in rules.check(node)))


def _check_top_level(tree: ast.Module) -> Iterator[CodeFault]:
    for position, node in enumerate(tree.body):
        is_text = position == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not isinstance(
            node,
            ast.Import | ast.ImportFrom | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign
            | ast.AnnAssign,
        ):  # fmt: skip
            yield CodeFault(
                "construct",
                f"line {node.lineno}: a module contains imports, classes, functions and constants only; move the rest "
                "into a function",
            )


class _Rules:
    """The rules for one tree: they need to know its names and its modules."""

    def __init__(self, tree: ast.AST, known: frozenset[str]) -> None:
        self._modules = dict(_list_module_names(tree))
        self._bound = known | _list_bound_names(tree) | frozenset(HOST_FUNCTIONS)
        self._module_uses = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }

    def check(self, node: ast.AST) -> Iterator[CodeFault]:
        """Yields what is wrong with one node, without its children."""
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from _check_import(node)
            case ast.Attribute():
                yield from self._check_attribute(node)
            case ast.Name():
                yield from self._check_name(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from _check_definition(node)
            case ast.Constant(value=str(text)) if _reads_internals(text):
                yield CodeFault("security", f"line {node.lineno}: a format text reads an internal attribute")
            case ast.ExceptHandler(type=None):
                yield CodeFault("security", f"line {node.lineno}: name the exceptions, at least `except Exception`")
            case ast.arg() if node.arg.startswith(RESERVED_PREFIX) or node.arg in HOST_FUNCTIONS:
                yield CodeFault("security", f"line {node.lineno}: the name {node.arg!r} is reserved")
            case _ if type(node) in _REFUSED_NODES:
                yield CodeFault("construct", f"line {_get_line(node)}: {_REFUSED_NODES[type(node)]} cannot be used")

    def _check_attribute(self, node: ast.Attribute) -> Iterator[CodeFault]:
        name = node.attr
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if (name.startswith("_") and (owner != "self" or name.startswith("__"))) or name in _FRAME_ATTRIBUTES:
            yield CodeFault("security", f"line {node.lineno}: the attribute {name!r} is internal and cannot be used")
        elif name.startswith("model_") and name != "model_dump":
            yield CodeFault(
                "construct", f"line {node.lineno}: models have no {name!r} here; use fields and model_dump()"
            )
        elif owner in self._modules and not _is_offered(self._modules[owner], name):
            yield CodeFault("import", f"line {node.lineno}: {self._modules[owner]}.{name} cannot be used")

    def _check_name(self, node: ast.Name) -> Iterator[CodeFault]:
        name = node.id
        is_stored = not isinstance(node.ctx, ast.Load)
        if name.startswith((RESERVED_PREFIX, "__")) or (is_stored and name in HOST_FUNCTIONS):
            yield CodeFault("security", f"line {node.lineno}: the name {name!r} is reserved")
        elif is_stored:
            return
        elif name in self._modules and id(node) not in self._module_uses:
            yield CodeFault("security", f"line {node.lineno}: the module {name!r} can only be used as {name}.something")
        elif name not in self._bound and name not in _ALLOWED_BUILTINS:
            if hasattr(builtins, name):
                yield CodeFault("security", f"line {node.lineno}: {name} cannot be used in a tool")
            else:
                yield CodeFault("names", f"line {node.lineno}: there is no {name!r}; define or import it")


def _check_import(node: ast.Import | ast.ImportFrom) -> Iterator[CodeFault]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name not in ALLOWED_IMPORTS or "." in alias.name or alias.name in ("pydantic", "__future__"):
                yield CodeFault("import", f"line {node.lineno}: {_explain_import(alias.name)}")
            elif (alias.asname or alias.name).startswith(RESERVED_PREFIX):
                yield CodeFault("security", f"line {node.lineno}: the name {alias.asname!r} is reserved")
        return
    module = node.module or ""
    if node.level or module not in ALLOWED_IMPORTS:
        yield CodeFault("import", f"line {node.lineno}: {_explain_import('.' * node.level + module)}")
        return
    for alias in node.names:
        if alias.name == "*" or not _is_offered(module, alias.name):
            yield CodeFault("import", f"line {node.lineno}: {alias.name!r} of {module} cannot be imported")
        elif (alias.asname or alias.name).startswith(RESERVED_PREFIX) or alias.asname in HOST_FUNCTIONS:
            yield CodeFault("security", f"line {node.lineno}: the name {alias.asname!r} is reserved")
        elif module in ("pydantic", "__future__") and alias.asname is not None:
            yield CodeFault("import", f"line {node.lineno}: import {alias.name} under its own name")


def _reads_internals(text: str) -> bool:
    """Whether `str.format` with this text would read an attribute that begins with an underscore."""
    try:
        return any("._" in (name or "") for _, name, _, _ in Formatter().parse(text))
    except ValueError:  # no format text
        return False


def _explain_import(name: str) -> str:
    if name in ALLOWED_IMPORTS:
        offered = ", ".join(ALLOWED_IMPORTS[name])
        return f"write `from {name} import ...`" + (f" (offered: {offered})" if offered != "*" else "")
    return f"{name!r} cannot be imported; allowed: {', '.join(sorted(ALLOWED_IMPORTS))}"


def _is_offered(module: str, name: str) -> bool:
    """Whether a module offers a name: a listed one, or a public one that is not a module itself."""
    allowed = ALLOWED_IMPORTS[module]
    if allowed != _ALL:
        return name in allowed
    # Only modules of the allow-list get here: the standard library's, without side effects when imported.
    loaded = importlib.import_module(module)
    value = getattr(loaded, name, None)
    return not name.startswith("_") and hasattr(loaded, name) and not isinstance(value, types.ModuleType)


def _check_definition(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[CodeFault]:
    if node.name.startswith(RESERVED_PREFIX) or node.name in HOST_FUNCTIONS:
        yield CodeFault("security", f"line {node.lineno}: the name {node.name!r} is reserved")
    elif node.name.startswith("__") and node.name not in _CLASS_METHODS:
        yield CodeFault("security", f"line {node.lineno}: {node.name} cannot be defined")
    if isinstance(node, ast.ClassDef) and node.keywords:
        yield CodeFault(
            "security", f"line {node.lineno}: {node.name}: metaclasses and keywords of classes are not used"
        )


def _list_module_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in ALLOWED_IMPORTS:
                    yield alias.asname or alias.name, alias.name


def _list_bound_names(tree: ast.AST) -> frozenset[str]:
    """Every name that is bound anywhere: by assignment, definition, import, parameter, pattern or handler."""
    bound: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if not isinstance(node.ctx, ast.Load):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.arg(arg=name):
                bound.add(name)
            case ast.alias(name=name, asname=other):
                bound.add((other or name).partition(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
    return frozenset(bound)


def _get_line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))
