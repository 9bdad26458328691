"""Markdown: the source itself, split at its blocks, so that quotations match it word by word."""

from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from agent.ingest.parsers.draft import Block, Draft
from agent.ingest.parsers.file_input import InputFile
from agent.ingest.parsers.plain import decode, make_draft

_FRONT_MATTER = "---"


def read_markdown(source: InputFile) -> Draft:
    """Reads headings with their level, whole tables, single list items, and paragraphs."""
    decoded = decode(source.data)
    draft = make_draft(decoded)
    lines = decoded.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    body = _take_front_matter(lines, draft)
    tokens = MarkdownIt("commonmark").enable("table").parse("\n".join(body))
    for token, title in _iter_blocks(tokens):
        _add(draft, token, title, body)
    return draft


def _take_front_matter(lines: list[str], draft: Draft) -> list[str]:
    """Returns the lines without a YAML header, whose title becomes metadata."""
    if (
        not lines
        or lines[0].rstrip() != _FRONT_MATTER
        or _FRONT_MATTER not in (rest := [x.rstrip() for x in lines[1:]])
    ):
        return lines
    end = rest.index(_FRONT_MATTER)
    for line in rest[:end]:
        key, _, value = line.partition(":")
        if key.strip() == "title" and value.strip():
            draft.metadata["title"] = value.strip().strip("'\"")
    return lines[end + 2 :]


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
        draft.add_heading(text if token.markup.startswith("#") else f"{'#' * level} {title}", level, title=title)
    elif token.type != "hr":
        draft.blocks.append(Block(text, "table" if token.type == "table_open" else "text"))


def _get_plain_text(token: Token) -> str:
    parts = [child.content for child in token.children or () if child.type in {"text", "code_inline"}]
    return "".join(parts).strip() or token.content
