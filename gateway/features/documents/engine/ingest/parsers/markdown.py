"""Markdown: the source itself, split at its blocks, so that quotations match it word by word."""

import re
from collections.abc import Iterator, Sequence

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from agent.text.encodings import decode
from gateway.features.documents.engine.ingest.parsers.draft import Block, Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.ingest.parsers.plain import make_draft

_FRONT_MATTER = "---"
_FRONT_MATTER_ENDS = (_FRONT_MATTER, "...")
_COMMENT = re.compile(r"\s*<!--(?:(?!-->).)*-->\s*", re.DOTALL)
"""A block that nobody sees."""
_BREAKS = frozenset({"softbreak", "hardbreak"})
_WORDS = _BREAKS | {"text", "code_inline", "image"}
_MAX_HEADER = 65_536
"""Characters; a longer block between two rules is text."""


def read_markdown(source: InputFile) -> Draft:
    """Reads headings with their level, whole tables, single list items, and paragraphs."""
    decoded = decode(source.data)
    draft = make_draft(decoded)
    lines = decoded.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    body = _take_front_matter(lines, draft)
    tokens = MarkdownIt("commonmark").enable("table").parse("\n".join(body))
    end = 0
    for token, title in _iter_blocks(tokens):
        begin = (token.map or (end, end))[0]
        _add_loose(draft, body[end:begin])
        _add(draft, token, title, body)
        end = (token.map or (end, end))[1]
    _add_loose(draft, body[end:])
    return draft


def _add_loose(draft: Draft, lines: Sequence[str]) -> None:
    """Adds what belongs to no block: the addresses and titles that links name elsewhere."""
    if any(map(str.strip, lines)):
        draft.add_text("\n".join(lines).strip("\n"))


def _take_front_matter(lines: list[str], draft: Draft) -> list[str]:
    """The lines without a YAML header: its title becomes metadata, and if it says more, it is the first block.

    Only a mapping is a header: otherwise the first line is a rule, and what follows is text.
    """
    if lines[0].rstrip() != _FRONT_MATTER:
        return lines
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in _FRONT_MATTER_ENDS), None)
    if end is None:
        return lines
    header = "\n".join(lines[1:end])
    try:
        front = yaml.safe_load(header) if len(header) <= _MAX_HEADER else None
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: a date that does not exist
        return lines
    if not isinstance(front, dict):
        return lines
    if isinstance(title := front.get("title"), str | int | float) and str(title).strip():
        draft.metadata["title"] = str(title).strip()
    if front.keys() - {"title"}:  # fees and deadlines, as often as names of layouts
        draft.add_text(header.strip("\n"))
    return lines[end + 1 :]


def _iter_blocks(tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    """Yields the outermost blocks (of lists the outermost items), and the plain text of headings."""
    skip_below: int | None = None
    for position, token in enumerate(tokens):
        if skip_below is not None:
            if token.nesting == -1 and token.level == skip_below:
                skip_below = None
            continue
        if token.map is None or token.type in {"bullet_list_open", "ordered_list_open"}:
            continue
        if token.nesting == 1:
            skip_below = token.level
        yield token, _get_plain_text(tokens[position + 1]) if token.type == "heading_open" else ""


def _add(draft: Draft, token: Token, title: str, lines: Sequence[str]) -> None:
    start, end = token.map or (0, 0)
    text = "\n".join(lines[start:end])
    if token.type == "heading_open":
        level = int(token.tag[1:])
        if level == 1:
            draft.metadata.setdefault("title", title)
        if not token.markup.startswith("#"):  # underlined, and of several lines
            text = f"{'#' * level} {' '.join(map(str.strip, lines[start : end - 1]))}"
        draft.add_heading(text, level, title=title)
    elif token.type != "hr" and not (token.type == "html_block" and _COMMENT.fullmatch(text)):
        draft.blocks.append(Block(text, "table" if token.type == "table_open" else "text"))


def _get_plain_text(token: Token) -> str:
    """The words of a heading, with those of its pictures."""
    parts = [" " if child.type in _BREAKS else child.content for child in token.children or () if child.type in _WORDS]
    return "".join(parts).strip() or token.content
