"""The style sheets of a page: which elements are visible and which are apart, by the cascade (specificity, order and
`!important`).

Only the sheets in the page itself count, as a browser shows it on a screen: rules for print are left out, and those for
features that not every browser has. A rule for wide screens, or for a ticked box, shows, but hides nothing: narrow ones
show what it hides, and tabs are content. It strikes out and raises only beside boxes that are ticked in the page. What
only an event shows (`:hover`) is hidden.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, islice, product
from typing import Any, Literal, TypeAlias

import tinycss2  # type: ignore[import-untyped]
from cssselect import GenericTranslator, Selector, SelectorError, parse
from lxml import etree  # type: ignore[import-untyped]

from agent.text.html.feature_queries import is_supported

MAX_SHEET_CHARS = 2_000_000
MAX_RULES = 5_000
"""Rules about these properties that are applied."""
_PROPERTIES = frozenset({"display", "visibility", "float", "position"})
_COUNTERS = frozenset({"counter-reset", "counter-increment", "counter-set"})
_RARE_PROPERTIES = (
    (re.compile(r"vertical-align\s*:\s*su(?:per|b)\b", re.IGNORECASE), {"vertical-align"}),
    (re.compile("line-through", re.IGNORECASE), {"text-decoration", "text-decoration-line"}),
    (re.compile(r"list-style", re.IGNORECASE), {"list-style", "list-style-type"}),
    (re.compile(r"counters?\(", re.IGNORECASE), _COUNTERS),
)
"""Properties that matter where a sheet raises, lowers or strikes out words, or numbers them; most align cells and
underline links."""
_SPACES = frozenset(
    f"{name}{side}"
    for name in ("margin", "padding")
    for side in ("", "-left", "-right", "-inline", "-inline-start", "-inline-end")
)
_BOX_PROPERTIES = frozenset(
    {"content", "display", "visibility", "opacity", "color", "font-size", "transform", "clip", "clip-path", "overflow"}
    | {"position", "float", "left", "right", "top", "bottom", "text-indent", "width", "height", *_COUNTERS, *_SPACES}
)
"""What matters of the boxes that sheets add before and behind elements."""
_CONTENT = re.compile(r"(?<![\w-])content\s*:\s*[^;}]*", re.IGNORECASE)
_USED_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)", re.IGNORECASE)
_EMPTY = frozenset({"", "''", '""', "none", "normal"})
_BOX = re.compile(r"::?(before|after)(?![\w-])", re.IGNORECASE)
_SIMPLE = re.compile(r"[\w\s.#>+~*,-]+")
"""Selectors all of whose names an element of the page must have: without attributes, `:not()` and escapes."""
_NAME = re.compile(r"[.#][\w-]+")
_PREFIXED = re.compile(r"(?<![:\\]):-")
"""A pseudo-class of some browsers only: the others ignore the whole rule."""
_COMPOUND = re.compile(r"\s*(?P<tag>[a-zA-Z][\w-]*)?(?P<names>(?:[.#][\w-]+)+)\s*")
"""A selector without other elements, which needs no search of the page."""
_MEDIA = frozenset({"all", "screen", "", "only screen"})
_WIDTH = re.compile(
    r"\(\s*(?:(?P<bound>min|max)-(?:device-)?width\s*:|width\s*(?P<sign>[<>])=?)\s*"
    r"(?P<number>\d{1,6}(?:\.\d{1,6})?)(?P<unit>px|em|rem)\s*\)"
)
"""A width as level 3 and level 4 of the media queries write it."""
_SCREEN_PX = 1920
_EM_PX = 16
_TICKED = re.compile(":checked", re.IGNORECASE)
_TICK = re.compile(rf":not\(\s*{_TICKED.pattern}\s*\)|{_TICKED.pattern}", re.IGNORECASE)
_LONGHANDS = {"text-decoration": "text-decoration-line", "list-style": "list-style-type"}
"""Properties that set another one, so that the last of both counts."""
_VARIABLE = "--"
_SIDES: Mapping[Any, Literal["", "before", "after"]] = {None: "", "before": "before", "after": "after"}
_HIDING = frozenset({"none", "hidden", "collapse"})
_NO_LAYER = 1_000_000
"""The strength of what is in no layer, and within one of what is in none of its own layers."""
_MAX_DEPTH = 8
"""Rules and conditions within each other."""
_MAX_VARIABLES = 50
"""Variables that the contents of a page name. Each may be set for every element."""
_MAX_SELECTOR = 400
"""Characters of a selector: reading one takes time that grows with their square."""
_MAX_NESTED = 400
"""Selectors of a rule in another one."""
_MAX_SELECTORS = 50_000
"""Selectors of a page that are looked at: more than the largest sheets have."""
_PARENT = re.compile(r"\"[^\"]*\"|'[^']*'|(&)")
"""The outer selector in an inner one, not in a string."""
_TRANSLATOR = GenericTranslator()

Side = Literal["before", "after"]
Generated = dict[tuple[Any, Side], dict[str, str]]
"""The values of `_BOX_PROPERTIES`, and of variables, by element and side."""


@dataclass(frozen=True, slots=True)
class SheetValues:
    """What style sheets set: the values of `_PROPERTIES` and `_RARE_PROPERTIES` by element, and those of the boxes that
    they add."""

    own: dict[Any, dict[str, str]] = field(default_factory=dict)
    generated: Generated = field(default_factory=dict)


_Layers: TypeAlias = dict[tuple[tuple[int, ...], str], int]
"""The places of layers in the order of all, by the layer around them and their name."""


@dataclass(frozen=True, slots=True, order=True)
class _Declaration:
    """A value, in the order of the cascade."""

    is_important: bool
    strength: tuple[int, ...]
    """By its layer: a later one overrules an earlier one, and no layer all of them, also within each; the other way
    round where it is important (CSS Cascade 5, 6.1)."""
    specificity: tuple[int, int, int]
    order: int
    name: str
    value: str
    path: str
    """An XPath, or a selector of one element by its names."""
    side: Literal["", "before", "after"]
    """The box that it is about; empty for the element itself."""


def list_sheet_values(root: Any) -> SheetValues:
    """What the style sheets of a page set of these properties, by the elements that they name."""
    sheets = "\n".join(
        style.text or "" for style in root.iter("style") if (style.get("media") or "").strip().lower() in _MEDIA
    )
    properties = _PROPERTIES.union(*(names for pattern, names in _RARE_PROPERTIES if pattern.search(sheets)))
    if not any(name in sheets for name in (*properties, "content")):
        return SheetValues()
    named = _list_named(root)
    declarations: list[_Declaration] = []
    with suppress(RecursionError):  # nobody nests so deep: what stands before it counts
        all_declarations = _iter_declarations(sheets[:MAX_SHEET_CHARS], properties, named.keys())
        declarations.extend(islice(all_declarations, MAX_RULES))
    values = SheetValues()
    variables: dict[Any, dict[str, str]] = {}
    for path, group in groupby(sorted(declarations), key=lambda one: one.path):
        elements = [*_find_elements(root, named, path)]
        for one, element in product(group, elements):
            if one.side:
                values.generated.setdefault((element, one.side), {})[one.name] = one.value
            else:
                target = variables if one.name.startswith(_VARIABLE) else values.own
                target.setdefault(element, {})[one.name] = one.value
    for key, boxed in list(values.generated.items()):
        _inherit_variables(boxed, key[0], variables)
        if boxed.get("content", "") in _EMPTY and _COUNTERS.isdisjoint(boxed):
            del values.generated[key]
    return values


def _inherit_variables(boxed: dict[str, str], element: Any, variables: Mapping[Any, Mapping[str, str]]) -> None:
    """Adds the variables that a box's content names, as its element or the nearest one around it sets them."""
    named = _list_variables(boxed.get("content", "")) if variables else ()
    missing = {name for name in named if name not in boxed}
    around = (element, *element.iterancestors()) if missing else ()
    for own in (variables[one] for one in around if one in variables):
        values = {name: own[name] for name in missing if name in own}
        boxed.update(values)
        missing -= values.keys()


@lru_cache(maxsize=16)
def _list_variables(content: str) -> tuple[str, ...]:
    """The first variables that a content names."""
    return tuple(match[1] for match in islice(_USED_VARIABLE.finditer(content), _MAX_VARIABLES))


def read_own_style(style: str) -> dict[str, str]:
    """The properties that a `style` attribute sets, in lower case and by their long names: of each the last value, or
    the last important one. Values that begin with no word are left out."""
    values: dict[str, str] = {}
    important: set[str] = set()
    for declaration in style.lower().split(";"):
        name, _, rest = declaration.partition(":")
        value, mark, _ = rest.partition("!")
        name, value = _get_longhand(name.strip()), value.strip()
        if value[:1].isalpha() or value.startswith("-"):
            if mark:
                important.add(name)
            elif name in important:
                continue
            values[name] = value
    return values


def _get_longhand(name: str) -> str:
    return _LONGHANDS.get(name, name)


def _list_named(root: Any) -> dict[str, list[Any]]:
    """A page's elements by their classes and ids, as selectors write them."""
    named: dict[str, list[Any]] = {}
    for element in root.xpath("//*[@id or @class]"):
        classes = {f".{one}" for one in element.get("class", "").split()}
        for name in classes | {f"#{element.get('id', '')}"}:
            named.setdefault(name, []).append(element)
    return named


def _iter_declarations(sheets: str, properties: AbstractSet[str], names: AbstractSet[str]) -> Iterator[_Declaration]:
    """Yields the declarations of the selectors that may name an element of the page. Those that are not understood are
    left out."""
    order = 0
    names_of_contents = (name for content in _CONTENT.findall(sheets) for name in _list_variables(content))
    used = {*islice(dict.fromkeys(names_of_contents), _MAX_VARIABLES)}
    rules = tinycss2.parse_stylesheet(sheets, skip_comments=True, skip_whitespace=True)
    left = _MAX_SELECTORS
    layers: _Layers = {}
    for selectors, items, is_conditional, layer in _iter_rules(rules, layers):
        left -= len(selectors)
        if left < 0:
            return
        written = ",".join(selectors)
        sides = {side.lower() for side in _BOX.findall(written)}
        wanted = properties | _BOX_PROPERTIES if sides else properties
        declarations = {  # the last one counts
            (_get_longhand(item.lower_name), item.important): tinycss2.serialize(item.value).strip()
            for item in items
            if item.type == "declaration" and (item.lower_name in wanted or item.name in used)
        }
        if not declarations or _PREFIXED.search(written):
            continue
        is_hiding = any(name in _PROPERTIES and value.lower() in _HIDING for (name, _), value in declarations.items())
        if is_hiding and (is_conditional or _TICK.search(written)):
            continue
        ranks = (*layer, _NO_LAYER)
        for (name, important), value in declarations.items():
            is_variable = name.startswith(_VARIABLE)
            is_verbatim = name == "content" or is_variable
            tick, ticked = (_TICK, "[type]") if name in _PROPERTIES else (_TICKED, "[checked]")
            for path, specificity, side in _iter_paths([tick.sub(ticked, one) for one in selectors], names):
                if name in (_BOX_PROPERTIES if side else properties) or is_variable:
                    order += 1
                    exact = value if is_verbatim else value.lower()
                    strength = tuple(-rank for rank in ranks) if important else ranks
                    yield _Declaration(important, strength, specificity, order, name, exact, path, side)


def _iter_rules(
    rules: list[Any],
    layers: _Layers,
    depth: int = 0,
    outer: Sequence[str] = (),
    *,
    is_conditional: bool = False,
    layer: tuple[int, ...] = (),
) -> Iterator[tuple[Sequence[str], list[Any], bool, tuple[int, ...]]]:
    """Yields the selectors and the content of each rule, whether it has a condition that wide screens fulfil, and the
    layer that it is in. `outer` are the selectors of the rule that the rules are in; `layers` gets all layers in their
    order."""
    selectors: Sequence[str]
    for rule in rules:
        conditional, inner = is_conditional, layer
        if rule.type == "qualified-rule":
            selectors, is_part = _nest(_split(rule.prelude), outer), True
        elif rule.type == "at-rule" and depth < _MAX_DEPTH:
            condition = " ".join(tinycss2.serialize(rule.prelude).lower().split())
            if rule.lower_at_keyword == "layer":
                inner = _add_layers(condition, layer, layers)
            if rule.content is None or not _applies(rule, condition):
                continue
            selectors, is_part = outer, bool(outer)
            conditional = is_conditional or (rule.lower_at_keyword == "media" and "(" in condition)
        else:
            continue
        read = tinycss2.parse_blocks_contents if is_part else tinycss2.parse_rule_list
        items = read(rule.content, skip_comments=True, skip_whitespace=True)
        if is_part:
            yield selectors, items, conditional, inner
        if depth < _MAX_DEPTH and (selectors or not is_part):
            yield from _iter_rules(items, layers, depth + 1, selectors, is_conditional=conditional, layer=inner)


def _add_layers(names: str, outer: tuple[int, ...], layers: _Layers) -> tuple[int, ...]:
    """Adds layers, each with those around it that its name has, and returns the last one. They count from where they
    are named first."""
    layer = outer
    for one in names.split(","):
        layer = outer
        for name in one.split(".")[:_MAX_DEPTH]:
            layer = (*layer, layers.setdefault((layer, name.strip() or f"{len(layers)}"), len(layers)))
    return layer


def _split(tokens: list[Any]) -> list[str]:
    """The selectors of a list. A comma within a function is none of the list's."""
    parts: list[list[Any]] = [[]]
    for one in tokens:
        if one == ",":
            parts.append([])
        else:
            parts[-1].append(one)
    return ["".join(map(_write_token, part)).strip() for part in parts]


def _write_token(token: Any) -> str:
    """A part of a selector. `:not(a, b)` is written as `:not(a):not(b)`, which says the same of an element."""
    if token.type == "function" and token.lower_name == "not":
        return f"not({'):not('.join(_split(token.arguments))})"
    return str(token.serialize())


def _nest(selectors: Sequence[str], outer: Sequence[str]) -> list[str]:
    """The selectors of a rule in another one (CSS Nesting 1, 3), without those that are longer than any that people
    write: they multiply with each level."""
    if not outer:
        return [one for one in selectors if len(one) <= _MAX_SELECTOR]
    nested: list[str] = []
    for one in selectors:
        count = sum(bool(match[1]) for match in _PARENT.finditer(one))
        for around in outer:
            if len(nested) < _MAX_NESTED and len(one) + max(count, 1) * len(around) <= _MAX_SELECTOR:
                nested.append(_put_into(one, around) if count else f"{around} {one}")
    return nested


def _put_into(selector: str, around: str) -> str:
    """A selector with the outer one in place of `&`."""
    return _PARENT.sub(lambda match: around if match[1] else match[0], selector)


def _applies(rule: Any, condition: str) -> bool:
    """Whether the rules below an at-rule apply to a new browser with a screen of 1,920 pixels."""
    if rule.lower_at_keyword == "media":
        return any(all(map(_is_true, query.split(" and "))) for query in condition.split(","))
    if rule.lower_at_keyword == "supports":  # true only where that is certain: what a browser hides is not for readers
        return is_supported(rule.prelude) is True
    return bool(rule.lower_at_keyword == "layer")


def _is_true(part: str) -> bool:
    width = _WIDTH.fullmatch(part.strip())
    if width is None:
        return part.strip() in _MEDIA
    limit = float(width["number"]) * (1 if width["unit"] == "px" else _EM_PX)
    return limit <= _SCREEN_PX if width["bound"] == "min" or width["sign"] == ">" else limit >= _SCREEN_PX


def _iter_paths(
    selectors: Sequence[str], names: AbstractSet[str]
) -> Iterator[tuple[str, tuple[int, int, int], Literal["", "before", "after"]]]:
    for written in selectors:  # most sheets are made for other pages too, and a search takes time
        if _SIMPLE.fullmatch(_BOX.sub("", written)) and not names >= set(_NAME.findall(written)):
            continue
        with suppress(SelectorError, RecursionError):
            (one,) = parse(written)
            if one.pseudo_element in _SIDES:
                yield _write_path(one), one.specificity(), _SIDES[one.pseudo_element]


def _write_path(selector: Selector) -> str:
    text = _BOX.sub("", selector.canonical())
    if _COMPOUND.fullmatch(text):
        return text
    return str(_TRANSLATOR.selector_to_xpath(selector, prefix="descendant-or-self::"))


def _find_elements(root: Any, named: Mapping[str, list[Any]], path: str) -> list[Any]:
    if compound := _COMPOUND.fullmatch(path):
        names = _NAME.findall(compound["names"])
        first, *others = sorted((named.get(name, []) for name in names), key=len)
        narrowing = [set(elements) for elements in others]
        tag = compound["tag"]
        return [one for one in first if tag in (None, one.tag) and all(one in elements for elements in narrowing)]
    try:
        elements: list[Any] = root.xpath(path)
    except etree.XPathError:
        return []
    return elements
