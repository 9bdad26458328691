"""HTML: what a reader of the page would see, in page order.

kreuzberg is the fall-back: it loses text that follows a table, puts nested tables first, and keeps link addresses
(docs/adr/0004-parsers.md). Hidden text is left out, because it is the usual place for instructions to a model.
"""

from agent.text.html.blocks import HtmlWalk, TooDeepError, parse_tree
from agent.text.html.encoding import decode_page
from agent.text.html.mathml import write_equations
from agent.text.html.visibility import remove_hidden
from gateway.features.documents.engine.ingest.errors import ParserCorruptError
from gateway.features.documents.engine.ingest.parsers.draft import Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.ingest.parsers.plain import make_draft


def read_html(source: InputFile) -> Draft:
    """Reads headings, paragraphs, list items, tables and described pictures.

    Raises `ParserCorruptError` for a page nested deeper than the 256 levels that libxml2 follows.
    """
    decoded = decode_page(source.data)
    return parse_page(decoded.text, make_draft(decoded))


def parse_page(text: str, draft: Draft) -> Draft:
    """Parses HTML that is text already, such as the body of a mail, into `draft`."""
    try:
        root = parse_tree(text)
    except TooDeepError as error:
        raise ParserCorruptError(str(error), reason="nesting") from error
    if root is None:
        return draft
    title = next((one.text for one in root.iter("title") if next(one.iterancestors("svg"), None) is None), None)
    if title and title.strip():
        draft.metadata.setdefault("title", " ".join(title.split()))
    if language := root.get("lang"):
        draft.metadata.setdefault("language", language)
    remove_hidden(root)
    write_equations(root)
    body = root.find("body")
    HtmlWalk(draft).visit(root if body is None else body)
    return draft
