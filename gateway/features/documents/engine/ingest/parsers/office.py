"""docx, pptx, xlsx and html by kreuzberg, whose document nodes become blocks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kreuzberg import ExtractionConfig, PageConfig, extract_bytes_sync

from gateway.features.documents.engine.ingest.parsers.draft import Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.search.models import FileType

_OPEN_XML = "application/vnd.openxmlformats-officedocument."
_MIME: dict[FileType, str] = {
    "docx": f"{_OPEN_XML}wordprocessingml.document",
    "pptx": f"{_OPEN_XML}presentationml.presentation",
    "xlsx": f"{_OPEN_XML}spreadsheetml.sheet",
    "html": "text/html",
}
_SKIPPED_LAYERS = frozenset({"header", "footer"})
"""Running heads and feet repeat on every page and have no place in the text."""

Node = Mapping[str, Any]


def read_office(source: InputFile) -> Draft:
    """Reads an office file. Raises kreuzberg's errors, which the caller handles like any reader's."""
    config = ExtractionConfig(
        use_cache=False,
        enable_quality_processing=False,
        output_format="plain"
        if source.file_type == "docx"
        else "markdown",  # plain pages hold a node's words as they are
        include_document_structure=True,
        pages=PageConfig(extract_pages=True),
    )
    result = extract_bytes_sync(source.data, _MIME[source.file_type], config)
    draft = Draft(pages=result.get_page_count(), metadata=_read_metadata(result.metadata))
    draft.uncertainties.extend(warning.message for warning in result.processing_warnings)
    every: Sequence[Node] = result.document["nodes"] if result.document else ()
    nodes = [node for node in every if node.get("content_layer") not in _SKIPPED_LAYERS]
    if source.file_type == "docx":
        placed = _by_text(nodes, [page["content"] for page in result.pages or ()])
    elif source.file_type == "xlsx":
        placed = _by_heading(nodes)
        draft.pages = len(result.metadata.get("sheet_names") or ())
    else:
        placed = ((node, node.get("page")) for node in nodes)
    for node, page in placed:
        _add(draft, node, every, page)
    return draft


def _add(draft: Draft, node: Node, nodes: Sequence[Node], page: int | None) -> None:
    content = node["content"]
    text = content.get("text") or ""
    match content["node_type"]:
        case "title" | "heading":
            draft.add_heading(text, content.get("level") or 1, page)
        case "list_item":
            draft.add_text(f"{_format_marker(node, nodes)} {text}", page)
        case "table":
            draft.add_table(_read_rows(content["grid"]), page)
        case "image":
            draft.add_image(content.get("description") or "", page)
        case "paragraph" | "code" | "formula" | "footnote":
            draft.add_text(text, page)
        case _:  # groups, lists and quotes are containers; their children follow
            pass


def _format_marker(node: Node, nodes: Sequence[Node]) -> str:
    parent = nodes[node["parent"]] if node.get("parent") is not None else None
    if parent is None or not parent["content"].get("ordered"):
        return "-"
    place = next((n for n, child in enumerate(parent["children"], 1) if nodes[child] is node), 1)
    return f"{place}."


def _read_rows(grid: Mapping[str, Any]) -> list[list[str]]:
    rows = [[""] * grid["cols"] for _ in range(grid["rows"])]
    for cell in grid["cells"]:
        rows[cell["row"]][cell["col"]] = cell["content"]
    return rows


def _by_text(nodes: Sequence[Node], pages: Sequence[str]) -> Iterator[tuple[Node, int | None]]:
    """Yields each node with the page that its text comes from; kreuzberg knows a docx's pages but not a node's."""
    page, offset = 0, 0
    for node in nodes:
        text = (node["content"].get("text") or "").strip()
        for number in range(page, len(pages)) if text else ():
            at = pages[number].find(text, offset if number == page else 0)
            if at >= 0:
                page, offset = number, at + len(text)
                break
        yield node, page + 1 if pages else None


def _by_heading(nodes: Sequence[Node]) -> Iterator[tuple[Node, int | None]]:
    """Yields each node of a workbook with its sheet number; sheet names are its only headings."""
    sheet = 0
    for node in nodes:
        sheet += node["content"]["node_type"] == "heading"
        yield node, sheet or None


def _read_metadata(found: Mapping[str, Any]) -> dict[str, Any]:
    title = found.get("title") or (found.get("core_properties") or {}).get("title")
    metadata = {
        "title": title,
        "authors": list(found.get("authors") or ()),
        "created": found.get("created_at"),
        "modified": found.get("modified_at"),
        "sheets": list(found.get("sheet_names") or ()),
        "language": found.get("language"),
    }
    return {name: value for name, value in metadata.items() if value}
