"""Conditions of `@supports` (CSS Conditional 4): whether a browser in use fulfils them.

There are three answers: yes, no, and unknown for what only some browsers have. Sheets ask before they show something
new in place of an older form, which they hide.
"""

from itertools import pairwise
from typing import Any, TypeAlias

import tinycss2  # type: ignore[import-untyped]

Tokens: TypeAlias = list[Any]
"""Tokens of tinycss2, which has no types."""

_MAX_DEPTH = 8
_DISPLAYS = frozenset(
    {"block", "inline", "inline-block", "flex", "inline-flex", "grid", "inline-grid", "table", "inline-table"}
    | {"contents", "flow-root", "list-item", "none", "table-cell"}
)
_PROPERTY_NAMES = (
    "accent-color all align-content align-items align-self animation animation-timing-function appearance aspect-ratio "
    "backdrop-filter background background-blend-mode background-clip background-image block-size border-radius "
    "box-shadow break-inside caret-color clip-path color column-count column-gap columns contain container-name "
    "container-type filter flex flex-basis flex-direction flex-wrap font-feature-settings font-variation-settings gap "
    "grid grid-area grid-auto-flow grid-column grid-gap grid-row grid-template grid-template-areas "
    "grid-template-columns grid-template-rows height inline-size inset inset-inline isolation justify-content "
    "justify-items line-clamp margin margin-inline margin-inline-start mask mask-image max-height max-inline-size "
    "max-width min-height min-width mix-blend-mode object-fit object-position opacity order overflow overflow-wrap "
    "overscroll-behavior padding padding-bottom padding-inline padding-left padding-top place-content place-items "
    "pointer-events row-gap scroll-behavior scroll-margin scroll-snap-align scroll-snap-type shape-outside tab-size "
    "text-decoration-color text-decoration-style text-underline-offset touch-action transform transform-style "
    "transition user-select width will-change writing-mode -webkit-appearance -webkit-background-clip "
    "-webkit-box-orient -webkit-clip-path -webkit-line-clamp -webkit-mask -webkit-mask-image "
    "-webkit-text-fill-color -webkit-text-stroke -webkit-transform"
)
_PROPERTIES = frozenset(_PROPERTY_NAMES.split()) - {"line-clamp"}
"""What every browser in use has, with all values that sheets ask for."""
_DEAD_PREFIXES = ("-ms-", "-o-", "-khtml-")
"""Of browsers that nobody uses today."""
_PSEUDO_CLASSES = frozenset(
    {"has", "is", "where", "not", "focus-visible", "focus-within", "nth-child", "first-child", "last-child", "hover"}
    | {"checked", "marker", "before", "after", "placeholder", "placeholder-shown", "focus", "root", "empty", "target"}
)


def is_supported(condition: Tokens, depth: int = 0) -> bool | None:
    """Whether browsers fulfil a condition; None if only some do, or if it is not understood."""
    tokens = [token for token in condition if token.type not in {"whitespace", "comment"}]
    if not tokens or depth > _MAX_DEPTH:
        return None
    if _get_word(tokens[0]) == "not":
        answer = _evaluate(tokens[1], depth) if len(tokens) == 2 else None
        return None if answer is None else not answer
    words = {_get_word(token) for token in tokens[1::2]}
    if len(words) > 1 or len(tokens) % 2 == 0 or not words <= {"and", "or"}:
        return None
    answers = [_evaluate(token, depth) for token in tokens[::2]]
    decisive = words == {"or"}
    return decisive if decisive in answers else None if None in answers else not decisive


def _get_word(token: Any) -> str:
    return str(token.lower_value) if token.type == "ident" else ""


def _evaluate(token: Any, depth: int) -> bool | None:
    if token.type == "function" and token.lower_name == "selector":
        return _has_selector(token.arguments)
    if token.type != "() block":
        return None
    declaration = tinycss2.parse_one_declaration(token.content)
    if declaration.type == "declaration":
        return _has_property(declaration.lower_name, tinycss2.serialize(declaration.value).strip().lower())
    return is_supported(token.content, depth + 1)


def _has_property(name: str, value: str) -> bool | None:
    if name.startswith(_DEAD_PREFIXES) or value.startswith(_DEAD_PREFIXES):
        return False
    if not value or value.startswith(("-moz-", "-webkit-")):
        return None
    if name == "display":
        return True if value in _DISPLAYS else None
    if name == "position":
        return True if value in {"sticky", "fixed", "absolute", "relative", "static"} else None
    return True if name in _PROPERTIES or name.startswith("--") else None


def _has_selector(tokens: Tokens) -> bool | None:
    """Whether browsers have the pseudo-classes of a selector."""
    names = [
        after.lower_name if after.type == "function" else _get_word(after)
        for before, after in pairwise(tokens)
        if before == ":" and after != ":"
    ]
    return True if all(name in _PSEUDO_CLASSES for name in names) else None
