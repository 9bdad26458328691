"""The Markdown parser: CommonMark with tables, task lists, footnotes, formulas, bare addresses, and some HTML.

Everything a text can write is either parsed to a known element or shown as text: HTML that is not in `RAW_TAGS` is
shown, so that `List<String>` keeps its words. `cleaning.py` judges the result once more.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, cast

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_core.inline import inline as parse_inline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.gfm_autolink import gfm_autolink_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

from gateway.render.html.code import highlight
from gateway.render.html.emphasis_rule import add_emphasis
from gateway.render.html.formula_rules import add_formula_blocks, add_formulas
from gateway.render.html.formulas import keep_formula

MAX_INLINE_CHARS: Final = 6_000
"""Longest paragraph whose marks are read. A longer one is shown as it is: looking for the ends of marks takes time that
grows with the square of the length."""
MAX_INLINE_WORK: Final = 40_000_000
"""Most marks of all paragraphs of a text, each times the length of its paragraph: the end of many a mark is looked for
in the whole paragraph. Dense prose of the longest text takes half of it. What is beyond it is shown as it is."""
MAX_NESTING: Final = 24
RAW_TAGS: Final = frozenset(
    {
        "abbr", "b", "br", "cite", "code", "del", "details", "em", "hr", "i", "ins", "kbd", "li", "mark", "ol", "p",
        "pre", "q", "s", "samp", "small", "strong", "sub", "summary", "sup", "table", "tbody", "td", "th", "thead",
        "tr", "u", "ul", "var",
    }
)  # fmt: skip
"""HTML that a text may write itself. All other tags are shown as they are written."""
ARTIFACT: Final = re.compile(r"/v1/runs/\w+/artifacts/[\w./%-]{1,300}\.(?:png|jpe?g|gif|webp)", re.IGNORECASE)
"""The address of a picture that a tool has made. Other pictures become links: nothing is loaded from other hosts."""
_MARK = re.compile(r"[^\w\s.,]|_|www\.")
_ADDRESS = re.compile(r"(?:https?://|mailto:)\S", re.IGNORECASE)
_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)|<[!?]")
_CHECKBOX = re.compile(
    r'<input class="task-list-item-checkbox" (?:checked="checked" )?disabled="disabled" type="checkbox">'
)
"""How the plugin of task lists writes a box: as HTML."""
_HEADING_SHIFT = 2  # the page has headings of its own above an answer
_Rule = Callable[[RendererHTML, Sequence[Token], int, OptionsDict, EnvType], str]


@cache
def get_parser() -> MarkdownIt:
    """The parser of whole texts."""
    options = {"html": True, "breaks": True, "maxNesting": MAX_NESTING, "highlight": highlight}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    for plugin in (gfm_autolink_plugin, footnote_plugin, tasklists_plugin):
        plugin(parser)
    add_formulas(parser)
    add_emphasis(parser)
    parser.core.ruler.at("inline", _parse_inline)
    # An attribute of a known object: `validateLink` decides which addresses become links.
    parser.validateLink = is_shown_as_link  # type: ignore[method-assign]
    for name, rule in _RULES.items():
        parser.add_render_rule(name, cast("Any", rule))
    return parser


@cache
def get_block_parser() -> MarkdownIt:
    """A parser that finds the blocks of a text and leaves their words alone."""
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": MAX_NESTING}).enable("table")
    footnote_plugin(parser)
    dollarmath_plugin(parser, allow_labels=False)
    add_formula_blocks(parser)
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def is_shown_as_link(url: str) -> bool:
    """Whether an address may be followed, or shown as a picture of this gateway."""
    return _ADDRESS.match(url.strip()) is not None or _is_artifact(url)


def is_raw(html: str) -> bool:
    """Whether every tag of some HTML is one that a text may write itself."""
    return all(match[1] is not None and match[1].lower() in RAW_TAGS for match in _TAG.finditer(html))


def _is_artifact(url: str) -> bool:
    return ".." not in url and ARTIFACT.fullmatch(url) is not None


def _parse_inline(state: StateCore) -> None:
    """Parses the words of all blocks, but those of paragraphs that take too long."""
    long, left = [], MAX_INLINE_WORK
    for token in state.tokens:
        if token.type != "inline":
            continue
        work = len(_MARK.findall(token.content)) * len(token.content)
        if work > left or len(token.content) > MAX_INLINE_CHARS:
            token.type = "overlong"
            long.append(token)
        else:
            left -= work
    parse_inline(state)
    for token in state.tokens:
        _mark_linked_images(token.children or ())
    for token in long:
        token.type, token.children = "inline", [Token("text", "", 0, content=token.content)]


def _mark_linked_images(children: Sequence[Token]) -> None:
    """Marks the images inside links, such as badges: a link within a link would take the words of the outer one."""
    is_inside = False
    for token in children:
        is_inside = token.type == "link_open" or (is_inside and token.type != "link_close")
        if token.type == "image":
            token.meta["is_linked"] = is_inside


def _render_raw(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    html = tokens[at].content
    if is_raw(html) or _CHECKBOX.fullmatch(html):
        return html
    escaped = html.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<p>{escaped.strip()}</p>\n" if tokens[at].type == "html_block" else escaped


def _render_image(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[at]
    source = str(token.attrs.get("src", ""))
    label = _escape(self.renderInlineAsText(token.children or [], options, env))
    if _is_artifact(source):
        return f'<img src="{_escape(source)}" alt="{label}">'
    if token.meta.get("is_linked"):
        return label or "image"
    return f'<a href="{_escape(source)}">image: {label or _escape(source)}</a>'


def _render_heading(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    level = min(6, int(tokens[at].tag[1:]) + _HEADING_SHIFT)
    return f"<h{level}>" if tokens[at].nesting == 1 else f"</h{level}>\n"


def _render_cell(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[at]
    side = {"text-align:center": "middle", "text-align:right": "end"}.get(str(token.attrs.get("style", "")), "")
    return f'<{token.tag} class="{side}">' if side else f"<{token.tag}>"


def _render_formula(*, block: bool, is_alone: bool = False) -> _Rule:
    def render(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
        return keep_formula(tokens[at].content, cast("dict[str, Any]", env), block=block, is_alone=is_alone)

    return render


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


_RULES: Final[dict[str, _Rule]] = {
    "html_inline": _render_raw,
    "html_block": _render_raw,
    "image": _render_image,
    "heading_open": _render_heading,
    "heading_close": _render_heading,
    "th_open": _render_cell,
    "td_open": _render_cell,
    "math_inline": _render_formula(block=False),
    "math_inline_double": _render_formula(block=True),
    "math_block": _render_formula(block=True, is_alone=True),
}
"""How single elements are written, where it is not the library's way. Both plugins of formulas use the same names."""
