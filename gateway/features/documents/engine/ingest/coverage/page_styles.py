"""Which elements the style sheets of a page hide or part, by a reader of simple selectors of its own.

Knows types, classes, ids, `:is`, `:where`, `:not`, nested rules, descendants and children, which hide nearly all that
is hidden. A rule with another selector, or under a condition that is not understood, hides nothing here: what it hides
counts as text that was not read, and is reported. But it shows: what it shows counts as text that has to be read,
except on narrow screens, on paper, and by features that not all browsers have.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gateway.features.documents.engine.ingest.coverage.feature_conditions import is_everywhere

_SHEET = re.compile(r"<style\b([^>]*+)(?:>|\Z)(.*?)(?:</style|\Z)", re.IGNORECASE | re.DOTALL)
_MEDIA = re.compile(r"""media\s*=\s*["']?\s*([^"'>]*)""", re.IGNORECASE)
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_DECLARATION = re.compile(
    r"(?:^|[;{\s])(display|visibility|float|position|vertical-align(?=\s*:\s*su[bp]))\s*:\s*([a-z-]+)"
    r"\s*(!\s*important)?",
    re.IGNORECASE,
)
_ADDED = re.compile(r"::?(before|after)\s*$", re.IGNORECASE)
_CONTENT = re.compile(
    r"""(?:^|[;{\s])content\s*:\s*((?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^;}"'])*)""", re.IGNORECASE
)
_UNSEEN = re.compile(
    r"(?:opacity|font-size)\s*+:\s*+0*+(?:\.0*+)?(?:[a-z]++|%)?\s*+(?:[;!]|$)|visibility\s*:\s*hidden|display\s*:\s*none"
    r"|(?<![-\w])color\s*:\s*transparent|scale\(\s*+0?\s*+[,)]|(?:left|right|top|bottom|indent)\s*:\s*-\d{3}"
    r"|(?<![-\w])clip(?:-path)?\s*:|^(?=.*overflow\s*:\s*(?:hidden|clip)).*(?<![-\w])(?:width|height)\s*:\s*0",
    re.IGNORECASE | re.DOTALL,
)
"""Declarations by which text may be unseen; it is not counted then."""
_BY_EVENT = re.compile(r":(?:hover|focus|active)", re.IGNORECASE)
_STRING = re.compile(r""""((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|attr\(\s*([\w-]+)|(counters?\(|var\()|(/)""")
_ESCAPE = re.compile(r"\\([0-9a-fA-F]{1,6}\s?|.)", re.DOTALL)
_SPACE = re.compile(r"(?:margin|padding)[a-z-]{0,20}+\s*+:[^;:]*?(?<![\d.])0*(?:[1-9]|\.[3-9])", re.IGNORECASE)
"""Space beside an element, by its own style, that may part it from a word."""
_BOX = re.compile(r"block|flex|grid|table|box|list-item|flow-root")
_HAS_BOXES = re.compile(r"flex|grid|box")
_COMPOUND = re.compile(r"(?P<tag>\ue000?[a-zA-Z][a-zA-Z0-9]*|\*)?(?P<names>(?:[.#]\ue000?[\w-]+)*)")
_NAME = re.compile(r"([.#])(\ue000?)([\w-]+)")
_SCREENS = frozenset({"", "all", "screen"})
_SHOWS = re.compile(r"(?!none|hidden|collapse)")
"""A value that does not hide."""
_NOT_WIDE = re.compile(r"max-|<|\bprint\b|\bspeech\b|prefers-")
_LAYERS = re.compile(r"@layer\s+([^{;]*)[{;]")
"""Names of layers; a later one is stronger."""
_OWN = 1_000_000
"""The place of a layer's own rules among its layers, and of rules in no layer."""
_NOT = re.compile(r":not\(\s*([.#][\w-]+)\s*\)")
_IS = re.compile(r":(is|where)\(([^()]*)\)")
_FREE = "\ue000"
"""Before a name in `:where`, which makes its rule no stronger."""
_NAME_IN_WHERE = re.compile(r"([.#])|(?<![\w.#-])(?=[a-zA-Z])")
_MAX_CHOICES = 64
"""Selectors that one with choices stands for."""
_MAX_DEPTH = 8
"""Conditions within each other: each is read once more."""
_MAX_RULES = 5_000


class Tag(NamedTuple):
    """What selectors ask of an element."""

    name: str
    ids: frozenset[str]
    classes: frozenset[str]


class _Compound(NamedTuple):
    tag: str
    ids: frozenset[str]
    classes: frozenset[str]
    is_child: bool
    """Whether the element before it has to be its parent."""
    excluded: frozenset[str] = frozenset()
    """Ids and classes that the element must not have."""
    specificity: tuple[int, int, int] = (0, 0, 0)


class _Rule(NamedTuple):
    rank: tuple[int | tuple[int, ...], ...]
    compounds: tuple[_Compound, ...]
    property: str
    value: str


class Layout(NamedTuple):
    """How an element is shown."""

    is_hidden: bool = False
    is_box: bool = False
    is_inline_box: bool = False
    is_line: bool = False
    has_boxes: bool = False
    """Whether each of its children is a box."""
    is_skipped: bool = False
    """Whether its children are laid out as those of its parent."""
    is_moved: bool = False
    """Whether it is raised or lowered."""
    is_spaced: bool = False
    """Whether it may have space beside it."""


class PageStyles:
    """The rules of a page's style sheets about what is shown."""

    def __init__(self, text: str) -> None:
        self._rules: list[_Rule] = []
        self._by_key: dict[str, list[_Rule]] = {}
        """The rules by a name that the last element of their path must have: its id, a class, its type, or any."""
        self._adding: dict[str, list[_Rule]] = {}
        """The same of the rules that add text, whose properties are the sides."""
        self._layers: dict[tuple[str, ...], dict[str, int]] = {}
        """The places of the layers of all sheets in the one around them, by their names."""
        for match in _SHEET.finditer(text):
            media = _MEDIA.search(match[1])
            condition = media[1].strip().lower() if media else ""
            if not _NOT_WIDE.search(condition):
                self._add(_COMMENT.sub(" ", match[2]), is_certain=condition in _SCREENS)
        for rule in self._rules:
            self._by_key.setdefault(_get_key(rule.compounds[-1]), []).append(rule)

    def __bool__(self) -> bool:
        return bool(self._rules or self._adding)

    @property
    def adds_text(self) -> bool:
        """Whether any rule adds text to elements."""
        return bool(self._adding)

    def find_layout(self, path: Sequence[Tag], style: str) -> Layout:
        """How the last element of a path from the root is shown; `style` is its own attribute."""
        last = path[-1]
        keys = ("*", last.name, *(f"#{one}" for one in last.ids), *(f".{one}" for one in last.classes))
        rules = [rule for key in keys for rule in self._by_key.get(key, ()) if _matches(rule.compounds, path)]
        declared = {rule.property: rule.value for rule in sorted(rules, key=lambda rule: rule.rank)}
        return _make_layout(declared, style)

    def find_added(self, path: Sequence[Tag], given: Mapping[str, str], unknown: str) -> tuple[str, str]:
        """The texts that rules add before and behind the last element of a path, with a sign for what is unknown;
        empty if they add none."""
        last = path[-1]
        keys = ("*", last.name, *(f"#{one}" for one in last.ids), *(f".{one}" for one in last.classes))
        rules = [rule for key in keys for rule in self._adding.get(key, ()) if _matches(rule.compounds, path)]
        contents = {rule.property: rule.value for rule in sorted(rules, key=lambda rule: rule.rank)}
        before, after = (_write_content(contents.get(side, ""), given, unknown) for side in ("before", "after"))
        return before, after

    def _find_strength(self, layer: str | None) -> tuple[int, ...]:
        """The place of a layer's rules: a layer within another one is weaker than the other's own rules."""
        path: tuple[str, ...] = ()
        places = []
        for name in layer.split(".") if layer is not None else ():
            siblings = self._layers.setdefault(path, {})
            places.append(siblings.setdefault(name, len(siblings)))
            path = (*path, name)
        return (*places, _OWN)

    def _add_content(self, selector: str, block: str, strength: tuple[int, ...]) -> None:
        side, content = _ADDED.search(selector), _CONTENT.search(block)
        path = selector[: side.start()].strip() if side is not None else ""
        compounds = _read_selector(path)
        is_understood = bool(compounds)
        if not compounds and not _BY_EVENT.search(path):  # it may replace what another rule adds
            compounds = _read_selector(re.split(r"[\s>~+]+", path)[-1])
        if side is None or content is None or not compounds or len(self._rules) >= _MAX_RULES:
            return
        value = "none" if not is_understood or _UNSEEN.search(block) else content[1]
        rank = (
            not is_understood,
            strength,
            *_get_specificity(compounds),
            len(self._rules) + sum(map(len, self._adding.values())),
        )
        rule = _Rule(rank, compounds, side[1].lower(), value)
        self._adding.setdefault(_get_key(compounds[-1]), []).append(rule)

    def _add(self, sheet: str, *, is_certain: bool) -> None:
        for name in (one.strip() for names in _LAYERS.findall(sheet) for one in names.split(",")):
            self._find_strength(name)
        for selectors, block, has_certain_condition, layer in _iter_rules(sheet, is_certain):
            if len(self._rules) >= _MAX_RULES:
                return
            strength = self._find_strength(layer)
            for selector in _split_selectors(selectors) if "content" in block and has_certain_condition else ():
                self._add_content(selector, block, strength)
            declared = {(name.lower(), bool(sign)): value.lower() for name, value, sign in _DECLARATION.findall(block)}
            for (name, is_important), value in declared.items():  # the last one counts
                shows = _SHOWS.match(value) is not None
                for selector in _split_selectors(selectors) if shows or has_certain_condition else ():
                    compounds = _read_selector(_get_ticked(selector) if shows else selector)
                    if compounds and len(self._rules) < _MAX_RULES:
                        order = tuple(-place for place in strength) if is_important else strength
                        rank = (is_important, order, *_get_specificity(compounds), len(self._rules))
                        self._rules.append(_Rule(rank, compounds, name, value))


def _write_content(content: str, given: Mapping[str, str], unknown: str) -> str:
    text = ""
    for double, single, attribute, function, rest in _STRING.findall(content):
        if rest:
            break
        text += _ESCAPE.sub(_unescape, double or single) + given.get(attribute.lower(), "") + unknown * bool(function)
    return text


def _unescape(escape: re.Match[str]) -> str:
    """The character of an escape; none for the signs of icon fonts."""
    digits = escape[1].strip()
    if not re.fullmatch("[0-9a-fA-F]+", digits):
        return escape[1]
    sign = chr(min(int(digits, 16), 0x10FFFF))
    return "" if "\ue000" <= sign <= "\uf8ff" or sign >= "\U000f0000" else sign


def read_own_layout(style: str) -> Layout:
    """How an element is shown by its `style` attribute alone."""
    return _make_layout({}, style) if style else Layout()


def _make_layout(declared: dict[str, str], style: str) -> Layout:
    declared |= {name.lower(): value.lower() for name, value, _ in _DECLARATION.findall(style)}
    display = declared.get("display", "")
    is_apart = declared.get("float", "none") != "none" or declared.get("position") in ("absolute", "fixed")
    is_box = is_apart or _BOX.search(display) is not None
    is_inline_box = not is_apart and display.startswith("inline-")
    return Layout(
        is_hidden=display == "none" or declared.get("visibility") in ("hidden", "collapse"),
        is_box=is_box,
        is_inline_box=is_inline_box,
        is_line=is_box and not (is_apart or is_inline_box or display == "table-cell"),
        has_boxes=_HAS_BOXES.search(display) is not None,
        is_skipped=display == "contents",
        is_moved=declared.get("vertical-align") in ("super", "sub"),
        is_spaced=bool(style) and _SPACE.search(style) is not None,
    )


def _iter_rules(
    sheet: str, is_certain: bool, depth: int = 0, layer: str | None = None
) -> Iterator[tuple[str, str, bool, str | None]]:
    """Yields the selectors and the declarations of each rule, whether it applies to all screens, and the layer that it
    is in; rules for narrow screens and for paper are left out."""
    place = 0
    while (start := sheet.find("{", place)) >= 0:
        braces, end = 1, start + 1
        while end < len(sheet) and braces:
            braces += {"{": 1, "}": -1}.get(sheet[end], 0)
            end += 1
        head = sheet[place:start].rpartition(";")[2].strip()
        if not head.startswith("@"):
            block = sheet[start + 1 : end - 1]
            yield head, _leave_out_nested(block), is_certain, layer
            if "{" in block and depth < _MAX_DEPTH:
                for nested, own_block, is_sure, own_layer in _iter_rules(block, is_certain, depth + 1, layer):
                    yield _nest(head, nested), own_block, is_sure, own_layer
        elif head.startswith(("@media", "@supports", "@layer")) and depth < _MAX_DEPTH:
            condition = " ".join(head.removeprefix("@media").lower().split())
            feature = condition.partition("@supports")[2]
            if is_everywhere(feature) if feature else not _NOT_WIDE.search(condition):
                inner: str | None = layer
                if head.startswith("@layer"):
                    inner = ".".join(filter(None, (layer, head.removeprefix("@layer").strip())))
                is_sure = is_certain and (bool(feature) or condition.partition("@layer")[0].strip() in _SCREENS)
                yield from _iter_rules(sheet[start + 1 : end - 1], is_sure, depth + 1, inner)
        place = end


def _leave_out_nested(block: str) -> str:
    """A rule's own declarations, without the rules in it."""
    own, depth, start = "", 0, 0
    for match in re.finditer(r"[{}]", block):
        if match[0] == "{":
            if depth == 0:
                own += block[start : max(block.rfind(";", start, match.start()) + 1, start)]
            depth += 1
        else:
            depth = max(depth - 1, 0)
            start = match.end()
    return own + block[start:]


def _nest(outer: str, inner: str) -> str:
    """The selectors of a rule within another one."""
    pairs = [(one, other) for one in _split_selectors(outer) for other in _split_selectors(inner)][:_MAX_CHOICES]
    return ",".join(other.replace("&", one.strip()) if "&" in other else f"{one} {other}" for one, other in pairs)


def _split_selectors(selectors: str) -> list[str]:
    """The selectors of a list, with one for each choice of `:is` and `:where`."""
    if "(" not in selectors:
        return selectors.split(",")
    plain: list[str] = []
    depth = start = 0
    for match in re.finditer(r"[(),]|\Z", selectors):
        if match[0] in ("(", ")"):
            depth += 1 if match[0] == "(" else -1
        elif depth <= 0 or not match[0]:
            plain.extend(_list_choices(selectors[start : match.start()]))
            start = match.end()
    return plain


def _list_choices(selector: str) -> list[str]:
    """A selector with each choice of its `:is` or `:where` in place of it; itself if there are too many."""
    choices = [selector]
    while (match := _IS.search(choices[0])) is not None:
        written = match[2].split(",")
        before = selector[: match.start()]
        if len(choices) * len(written) > _MAX_CHOICES:
            return [selector]
        if before[-1:].strip(" >"):  # `p:is(h1)` is no selector that is read here, nor is a path behind a name
            written = [one for one in written if re.fullmatch(r"\s*(?:[.#][\w-]+)+\s*", one)]
        if match[1] == "where":
            written = [_NAME_IN_WHERE.sub(lambda name: f"{name[1] or ''}{_FREE}", one) for one in written]
        parts = [
            (choice[: place.start()], choice[place.end() :]) for choice in choices if (place := _IS.search(choice))
        ]
        choices = [f"{head}{one.strip()}{tail}" for head, tail in parts for one in written]
        if not choices:
            return []
        selector = choices[0]
    return choices


def _read_selector(selector: str) -> tuple[_Compound, ...]:
    """The compounds of a simple selector; nothing for any other."""
    compounds = []
    is_child = False
    for part in selector.replace(">", " > ").split():
        if part == ">":
            is_child = True
            continue
        match = _COMPOUND.fullmatch(_NOT.sub("", part))
        if match is None:
            return ()
        names = _NAME.findall(match["names"])
        ids = frozenset(name for kind, _, name in names if kind == "#")
        classes = frozenset(name for kind, _, name in names if kind == ".")
        tag = (match["tag"] or "*").lower()
        excluded = frozenset(_NOT.findall(part))
        counted = [kind for kind, free, _ in names if not free] + [name[0] for name in excluded]
        weight = counted.count("#"), counted.count("."), int(tag[0] not in {"*", _FREE})
        compounds.append(_Compound(tag.lstrip(_FREE), ids, classes, is_child, excluded, weight))
        is_child = False
    return tuple(compounds)


def _get_ticked(selector: str) -> str:
    """The part of a selector that a tick shows, such as the panel of a tab; the whole of any other selector."""
    before, tick, _ = selector.rpartition(":checked")
    return re.split(r"[\s>~+]+", selector[len(before) :].strip())[-1] if tick else selector


def _get_key(compound: _Compound) -> str:
    for sign, names in (("#", compound.ids), (".", compound.classes)):
        if names:
            return sign + min(names)
    return compound.tag


def _get_specificity(compounds: Sequence[_Compound]) -> tuple[int, int, int]:
    ids, classes, tags = (sum(one.specificity[place] for one in compounds) for place in range(3))
    return ids, classes, tags


def _matches(compounds: Sequence[_Compound], path: Sequence[Tag]) -> bool:
    """Whether a selector is true of the last element of a path."""
    if not path or not _is_like(compounds[-1], path[-1]):
        return False
    if len(compounds) == 1:
        return True
    ancestors = [len(path) - 1] if compounds[-1].is_child else range(len(path) - 1, 0, -1)
    return any(_matches(compounds[:-1], path[:place]) for place in ancestors)


def _is_like(compound: _Compound, tag: Tag) -> bool:
    is_like = compound.tag in ("*", tag.name) and compound.ids <= tag.ids and compound.classes <= tag.classes
    return is_like and not any(name[1:] in (tag.ids if name[0] == "#" else tag.classes) for name in compound.excluded)
