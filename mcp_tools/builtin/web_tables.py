"""Tables of web pages as Markdown.

The extraction of a page's main text loses tables on short pages, leaves cells below a `rowspan` empty, and writes no
header line where the page marks none. So each table is replaced by a placeholder before the extraction, which drops
placeholders in navigation and footers like other text there, and the table takes its place afterwards.
"""

import re
from typing import Any, TypeAlias
from urllib.parse import urljoin

from lxml import etree, html  # type: ignore[import-untyped]

from agent.text.html_tables import is_data_table, iter_loose_texts, read_table_rows
from agent.text.html_visibility import remove_hidden
from agent.text.mathml import write_equations

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`, which has no type stubs."""

MAX_TABLES = 500
MAX_COLUMNS = 100
_PLACEHOLDER = "stepgatetable{number}placeholder"
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
"""lxml refuses a text that declares an encoding."""
_FOUND = re.compile(r"[ \t]*stepgatetable(\d+)placeholder[ \t]*")


def prepare_page(page: str, url: str) -> tuple[str, list[str]]:
    """The page without what a browser hides, its data tables replaced by placeholders; and the tables as
    Markdown."""
    try:
        root = html.document_fromstring(_DECLARATION.sub("", page))
    except (etree.LxmlError, ValueError):  # not HTML
        return page, []
    remove_hidden(root)
    write_equations(root)
    tables: list[str] = []
    for table in list(root.iter("table")):
        is_nested = next(table.iterancestors("table"), None) is not None
        if is_nested or table.getparent() is None or len(tables) >= MAX_TABLES or not is_data_table(table):
            continue
        markdown = format_table(table, url)
        if markdown:
            _replace(table, _PLACEHOLDER.format(number=len(tables)))
            tables.append(markdown)
    return html.tostring(root, encoding="unicode"), tables


def put_tables(text: str, tables: list[str]) -> str:
    """The text with each placeholder replaced by its table, as a paragraph of its own."""

    def put(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"\n\n{tables[number]}\n\n" if number < len(tables) else match[0]

    return re.sub(r"\n{3,}", "\n\n", _FOUND.sub(put, text)) if tables else text


def format_table(table: Element, url: str) -> str:
    """A table as Markdown, its first row as the header; empty for one without text. Links are absolute."""
    for link in table.iter("a"):
        address = (link.get("href") or "").strip()
        text = " ".join(link.text_content().split())
        if text and address and not address.startswith(("#", "javascript:", "data:")):
            for child in list(link):
                link.remove(child)
            link.text = f"[{text}]({urljoin(url, address)})"
    rows = [[_format_cell(cell) for cell in row[:MAX_COLUMNS]] for row in read_table_rows(table)]
    rows = [row for row in rows if any(row)]
    if not rows:
        return ""
    width = max(map(len, rows))
    lines = [f"| {' | '.join((*row, *[''] * (width - len(row))))} |" for row in rows]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join([*(f"{' '.join(text.split())}\n" for text in iter_loose_texts(table)), *lines])


def _format_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _replace(table: Element, placeholder: str) -> None:
    paragraph = html.Element("p")
    paragraph.text, paragraph.tail = placeholder, table.tail
    table.getparent().replace(table, paragraph)
