"""A chat as one Markdown text, for its export."""

import re
from collections.abc import Sequence
from typing import Final, Literal

from markdown_it.token import Token

from agent.core.models import JsonObject
from agent.policy.guardrails.plain_text import escape_markdown, format_literal
from gateway.render.html.parser import get_block_parser

NAMES: Final = {"user": "You", "assistant": "Stepgate"}
_NOTHING: Final = {"user": "(a picture)", "assistant": "(no answer yet)"}
"""What stands for a message without text."""
_LEVELS: Final = 2
"""The levels of the export's own headings, below which those of messages begin."""
_DEEPEST, _UNDERLINED = 6, 2
"""The deepest heading, and the lines of one with a line below it."""
_HTML_ENDS: Final = tuple(
    (re.compile(rf"\s*<{begin}", re.IGNORECASE), end)
    for begin, end in (("!--", "-->"), ("pre", "</pre>"), ("script", "</script>"), ("style", "</style>"), (r"\?", "?>"))
)
"""HTML that goes on to its end, whatever lines follow."""

ChatText = tuple[Literal["user", "assistant"], str, JsonObject]
"""Who wrote a message, its text, and for an answer its view."""


def format_chat(title: str, messages: Sequence[ChatText]) -> str:
    """The messages in their order; what a person replied to the questions of a run comes before its answer."""
    parts = [f"# {' '.join(title.split()) or 'Chat'}"]
    for role, text, view in messages:
        replies = view.get("replies")
        if isinstance(replies, list):
            parts += [f"## {NAMES['user']}\n\n{_close(str(reply))}" for reply in replies]
        parts.append(f"## {NAMES[role]}\n\n{_close(text) or _NOTHING[role]}")
        metadata = view.get("metadata")
        listed = metadata.get("sources") if isinstance(metadata, dict) else None
        named = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        if named:  # as a list: `[1]: name` would be the target of every [1] in the file
            parts.append("\n".join(["Sources:", "", *(f"{source['id']}. {_escape_name(source)}" for source in named)]))
    return "\n\n".join(parts) + "\n"


def _escape_name(source: JsonObject) -> str:
    """The name of a source, such as the title of a page, which others wrote: nothing in it is live. An address can be
    copied."""
    name = str(source["name"])
    return format_literal(name) if "://" in name else escape_markdown(name)


def _close(text: str) -> str:
    """A message whose headings are below those of the export, and that ends what it began: an answer that was stopped
    may end within code, or within a comment of HTML."""
    lines = text.strip("\r\n").replace("\r\n", "\n").split("\n") if text.strip() else []
    tokens = [token for token in get_block_parser().parse("\n".join(lines)) if token.map is not None]
    for token in tokens:
        if token.type == "heading_open" and token.map is not None:
            _lower_heading(lines, token)
    last = tokens[-1] if tokens else None
    if last is not None and last.type == "fence" and last.level == 0 and not _ends_fence(lines, last.markup):
        lines.append(last.markup)
    elif last is not None and last.type == "html_block" and last.level == 0:
        lines += [end for begin, end in _HTML_ENDS if begin.match(last.content) and end not in last.content.lower()]
    return "\n".join(lines)


def _lower_heading(lines: list[str], token: Token) -> None:
    """Puts a heading below those of the export. Its underline becomes signs in front of it."""
    start, end = token.map or (0, 0)
    mark = "#" * min(_DEEPEST, int(token.tag[1:]) + _LEVELS)
    if token.markup.startswith("#"):
        lines[start] = lines[start].replace(token.markup, mark, 1)
    elif end - start == _UNDERLINED:
        lines[start], lines[end - 1] = f"{mark} {lines[start].lstrip()}", ""


def _ends_fence(lines: Sequence[str], markup: str) -> bool:
    """Whether a text that ends with a fence closes it."""
    end = lines[-1].strip()
    return len(lines) > 1 and len(end) >= len(markup) and end == markup[0] * len(end)
