"""Which parts of an HTML page a browser shows. Ingestion and `web_fetch` remove the others before they read a page.

Hidden text is the usual place for keys by which columns are sorted, and for instructions to a model.
"""

from collections.abc import Container, Iterator
from typing import Any, TypeAlias

from lxml import etree, html  # type: ignore[import-untyped]

from agent.text.html.generated import add_generated
from agent.text.html.grids import name_tables
from agent.text.html.layout import is_in_line, part_boxes
from agent.text.html.names import name_drawing, name_pictures
from agent.text.html.prices import write_cents
from agent.text.html.styles import Generated, list_sheet_values, read_own_style
from agent.text.html.tables import MOVED
from agent.text.superscripts import RAISED_SIGNS

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_HIDDEN = frozenset(
    {"script", "style", "svg", "canvas", "audio", "video", "iframe", "object", "noframes"}
    | {"select", "datalist", "annotation", "annotation-xml"}
)
_PICTURES = frozenset({"svg", "canvas", "audio", "video", "iframe", "object", "select"})
"""What takes a place in its line, so that the words before and after it are two."""
_INVISIBLE = frozenset({"hidden", "collapse"})
_SHOWN_BY = {"dialog": "open", "template": "shadowrootmode"}
"""Elements that are shown only with an attribute: open dialogs, and the declared content of a custom element."""
_VISIBILITY = ("hidden", "style", "class", "id")
"""Attributes by which an element may be hidden."""
_CELLS = ("td", "th")
_MOVED = {"super": "sup", "sub": "sub"}
"""The elements for what style sheets raise and lower, by the value of `vertical-align`."""


def remove_hidden(root: Element) -> None:
    """Removes what is not shown from a page's body, and parts what style sheets part.

    Text for browsers without scripts is shown only where nothing else is: there the page is made by scripts.
    """
    body = root.find("body")
    if body is None:
        body = root
    else:
        _join_bodies(root, body)
    _open_frames(body)
    _open_drawings(body)
    generated = _apply_sheets(root, body)
    seen_inside = _list_holders(body)
    without_scripts = []
    gone: set[Element] = set()
    for element in list(body.iter("*")):
        if element is body:
            continue
        if (parent := element.getparent()) is None or parent in gone:
            gone.add(element)  # with what was around it
        elif element.tag == "noscript":
            without_scripts.append(element)
        elif _is_hidden(element, seen_inside):
            _remove(element)
            gone.update([element] if element.getparent() is None else [])
        elif _get_own(element, "visibility") in _INVISIBLE:
            _remove_invisible(element, seen_inside)
    visible_elements = [element for element in without_scripts if _has_parent(element, body)]
    hidden_text = sum(len("".join(element.itertext()).strip()) for element in visible_elements)
    if len("".join(body.itertext()).strip()) > hidden_text or next(body.iter("img"), None) is not None:
        for element in visible_elements:
            _remove(element)
    add_generated(body, generated)
    name_pictures(body)
    part_boxes(body)
    _mark_moved(body)
    write_cents(body)
    name_tables(body)


def _join_bodies(root: Element, body: Element) -> None:
    """Puts what stands behind the body into it, as a browser does: joined pages have several."""
    for later in list(body.itersiblings()):
        if later.tag in {"body", "html"}:
            later.tag = "div"
        body.append(later)
    if body.tail and body.tail.strip():
        paragraph = etree.SubElement(body, "p")
        paragraph.text, body.tail = body.tail, None


def _open_frames(body: Element) -> None:
    """Puts the page that a frame holds in itself in its place, hidden where the frame is."""
    for frame in list(body.iter("iframe")):
        page = frame.get("srcdoc", "")
        if page.strip() and frame.getparent() is not None:
            try:
                content = html.fragment_fromstring(page, create_parent="div")
            except (etree.ParserError, ValueError):
                continue
            content.attrib.update({name: frame.get(name) for name in _VISIBILITY if frame.get(name) is not None})
            content.tail = frame.tail
            frame.getparent().replace(frame, content)


def _open_drawings(body: Element) -> None:
    """Puts the pieces of a page that a drawing holds, as diagrams do their labels, behind it: it is removed later."""
    last: dict[Element, Element] = {}
    for piece in list(body.iter("foreignobject")):
        drawing = next(piece.iterancestors("svg"), None)
        if drawing is None or drawing.getparent() is None:
            continue
        before = last.get(drawing, drawing)
        piece.tag, piece.tail, before.tail = "div", before.tail, None
        before.addnext(piece)
        last[drawing] = piece


def _list_holders(body: Element) -> set[Element]:
    """The elements with one below them that says it is visible, whatever is around it."""
    holders: set[Element] = set()
    for element in body.iter("*"):
        for above in element.iterancestors() if _is_visible(element) else ():
            if above in holders:
                break
            holders.add(above)
    return holders


def _remove_invisible(element: Element, seen_inside: Container[Element]) -> None:
    """Removes the text of an element that is only shown in parts: what is visible again below it stays."""
    element.text = None
    for child in list(element):
        child.tail = None
        if not isinstance(child.tag, str) or _is_visible(child):
            continue
        if child in seen_inside:
            _remove_invisible(child, seen_inside)
        else:
            _remove(child)


def _apply_sheets(root: Element, body: Element) -> Generated:
    """Writes what style sheets say of elements into their `style`, which it does not overrule; the boxes that they add.

    What they hide of a page that they hide for the most part is shown by its scripts, and is left as it is.
    """
    sheets = list_sheet_values(root)
    values = sheets.own
    hidden = [
        element
        for element, properties in values.items()
        if properties.get("display") == "none" or properties.get("visibility") in ("hidden", "collapse")
    ]
    whole = len("".join(_iter_texts(body))) if hidden else 0
    already_hidden = set(hidden)
    outermost = [one for one in hidden if already_hidden.isdisjoint(one.iterancestors())]
    if 2 * sum(len("".join(_iter_texts(one))) for one in outermost) > whole:
        values = {element: properties for element, properties in values.items() if element not in already_hidden}
    for element, properties in values.items():
        own = element.get("style", "")
        missing = [f"{name}: {value}" for name, value in properties.items() if not _get_own(element, name)]
        if missing:
            element.set("style", "; ".join([*missing, own]))
    return sheets.generated


def _iter_texts(element: Element) -> Iterator[str]:
    """Yields the text below an element without programs and styles, which are long on pages that scripts make."""
    yield from etree.ETXPath(".//text()[not(parent::script or parent::style)]")(element)


def _is_hidden(element: Element, seen_inside: Container[Element]) -> bool:
    if element.tag in _HIDDEN or _has_hidden_mark(element):
        return True
    if element.tag in _SHOWN_BY and element.get(_SHOWN_BY[element.tag]) is None:
        return True
    if _get_own(element, "display") == "none":
        return True
    return _get_own(element, "visibility") in _INVISIBLE and element not in seen_inside


def _has_hidden_mark(element: Element) -> bool:
    """Whether an element is hidden by its attribute. What a browser shows when it is searched is content, as folded
    parts are (HTML, 6.1)."""
    mark = element.get("hidden")
    return mark is not None and mark.strip().lower() != "until-found"


def _is_visible(element: Element) -> bool:
    return _get_own(element, "visibility") == "visible"


def _get_own(element: Element, name: str) -> str:
    """The value of a property in the element's own style; empty if it sets none."""
    style = element.get("style")
    return read_own_style(style).get(name, "") if style and name.partition("-")[0] in style.lower() else ""


def _remove(element: Element) -> None:
    """Removes an element, but not the text after it. A cell that is only invisible keeps its place in the table, and a
    drawing its name."""
    parent = element.getparent()
    if parent is None or (element.tag == "svg" and name_drawing(element)):
        return
    is_displayed = not _has_hidden_mark(element) and _get_own(element, "display") != "none"
    if element.tag in _CELLS and is_displayed:
        tail = element.tail
        spans = {name: value for name, value in element.attrib.items() if name in {"rowspan", "colspan"}}
        element.clear()
        element.attrib.update(spans)
        element.tail = tail
    else:
        if element.tag in _PICTURES and is_displayed:
            element.tail = f" {element.tail or ''}"
        element.drop_tree()


def _mark_moved(body: Element) -> None:
    """Puts a figure that a style raises or lowers into `sup` or `sub`. Boxes are parted by spaces already."""
    for element in list(body.iter("*")):
        tag = _MOVED.get(_get_own(element, "vertical-align"))
        if tag is None or not is_in_line(element) or not RAISED_SIGNS.issuperset(element.text_content().strip()):
            continue
        if any(next(axis(*MOVED), None) is not None for axis in (element.iterancestors, element.iter)):
            continue
        moved = element.makeelement(tag)
        tail, element.tail = element.tail, None
        element.addprevious(moved)
        moved.append(element)
        moved.tail = tail


def _has_parent(element: Element, root: Element) -> bool:
    return any(parent is root for parent in element.iterancestors())
