"""Cleans rendered HTML: an allow-list of elements, attributes, classes and addresses.

The HTML comes from our own parser, which writes none other. This is the second judgement, by a kept library, so that a
fault of the first one is not a hole. The page copies the result element by element with a list of its own.
"""

import re
from functools import cache
from typing import Final

import nh3

from gateway.render.html.parser import ARTIFACT, RAW_TAGS

_TAGS: Final = RAW_TAGS | {"a", "blockquote", "h3", "h4", "h5", "h6", "img", "input", "section", "span"}
_ATTRIBUTES: Final[dict[str, set[str]]] = {
    "a": {"href", "id"},
    "abbr": {"title"},
    "code": {"class"},
    "details": {"open"},
    "img": {"src", "alt"},
    "input": {"type", "checked", "disabled"},
    "li": {"id", "class"},
    "ol": {"start", "class"},
    "section": {"class"},
    "span": {"class"},
    "sup": {"class"},
    "td": {"class"},
    "th": {"class"},
    "ul": {"class"},
}
_CLASSES: Final = re.compile(
    r"language-[\w+#.-]{1,40}|middle|end|footnotes?|footnotes-list|footnote-item|footnote-ref|"
    r"contains-task-list|task-list-item(?:-checkbox)?"
)
_IDS: Final = re.compile(r"fn(?:ref)?-[\w.-]{1,80}-\d{1,4}(?::\d{1,4})?")


def clean_html(html: str) -> str:
    """HTML with nothing but what is allowed. Links get `rel="noopener noreferrer"`."""
    return nh3.clean(
        html,
        tags=set(_TAGS),
        clean_content_tags={"script", "style"},
        attributes=_ATTRIBUTES,
        attribute_filter=_filter_attribute,
        url_schemes={"http", "https", "mailto"},
    )


def _filter_attribute(tag: str, name: str, value: str) -> str | None:
    match name:
        case "class":
            known_classes = [one for one in value.split() if _is_known_class(tag, one)]
            return " ".join(known_classes) or None
        case "id":
            return value if _IDS.fullmatch(value) else None
        case "href":
            is_footnote = value.startswith("#") and _IDS.fullmatch(value[1:])
            return value if is_footnote or re.match(r"(?:https?|mailto):", value, re.IGNORECASE) else None
        case "src":
            return value if ".." not in value and ARTIFACT.fullmatch(value) else None
        case "type":
            return "checkbox"
        case "start":
            return value if re.fullmatch(r"\d{1,9}", value) else None
        case _:
            return value


def _is_known_class(tag: str, name: str) -> bool:
    return name in _get_code_classes() if tag == "span" else _CLASSES.fullmatch(name) is not None


@cache
def _get_code_classes() -> frozenset[str]:
    """The classes of coloured code."""
    from pygments.token import STANDARD_TYPES  # noqa: PLC0415 - loaded with the first code block

    return frozenset(filter(None, STANDARD_TYPES.values()))
