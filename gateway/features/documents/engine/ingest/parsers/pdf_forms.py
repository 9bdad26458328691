"""The filled fields of a PDF's form, as lines of a label and a value. Their values are not part of the page's text."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from liteparse import AnnotationRect, FormField, ParsedPage, TextItem

_BUTTONS = ("pushbutton", "signature")
_PASSWORD = 1 << 13
"""A flag of a text field whose value no viewer shows (PDF 1.7, 12.7.4.3)."""
_OFF = frozenset({"", "off"})
_GAP = 12.0
"""Points between a label and its field, one above the other."""
_MAX_LABEL_CHARS = 120
_PART = re.compile(r"\[\d+\]$")


def list_fields(page: "ParsedPage") -> list[str]:
    """The fields of a page that hold something, from top to bottom: `Rent: 1240`, `Pets allowed: yes`."""
    fields = [one for one in page.form_fields or () if one.type not in _BUTTONS and not _is_password(one)]
    fields.sort(key=lambda one: (round(one.rect.y / 4), one.rect.x) if one.rect is not None else (0, 0))
    lines = (_format_field(one, page.text_items or ()) for one in fields)
    return list(dict.fromkeys(filter(None, lines)))


def _is_password(field: "FormField") -> bool:
    return field.type == "text" and bool((field.field_flags or 0) & _PASSWORD)


def _format_field(field: "FormField", items: "Sequence[TextItem]") -> str:
    value = _read_value(field)
    if not value:
        return ""
    label = " ".join((field.alternate_name or _find_label(field, items) or _shorten_name(field.name or "")).split())
    return f"{label.rstrip(' :')}: {value}" if label else value


def _read_value(field: "FormField") -> str:
    """The value as a person sees it. A box that is not ticked says no, a button of several nothing."""
    if field.type == "checkbox":
        return "yes" if field.checked else "no"
    if field.type == "radiobutton":
        value = field.export_value or field.value or ""
        return value if field.checked and value.lower() not in _OFF else ""
    if field.selected_options:
        return ", ".join(field.selected_options)
    return " ".join((field.value or "").split())


def _find_label(field: "FormField", items: "Sequence[TextItem]") -> str:
    """The printed text before the field in its line, or right above it; a tick box has it behind."""
    if field.rect is None:
        return ""
    row = sorted((one for one in items if _is_beside(one, field.rect)), key=lambda one: one.x)
    before = [one for one in row if one.x + one.width / 2 < field.rect.x]
    after = [one for one in row if one.x >= field.rect.x + field.rect.width - 1]
    first, second = (after, before) if field.type == "checkbox" else (before, [])
    label_chars = list(_take_run(first if field.type == "checkbox" else first[::-1])) or list(_take_run(second[::-1]))
    label_chars.sort(key=lambda one: one.x)
    label_chars = label_chars or [one for one in items if _is_above(one, field.rect)]
    return " ".join(one.text.strip() for one in label_chars)[:_MAX_LABEL_CHARS]


def _take_run(items: "Sequence[TextItem]") -> "Iterator[TextItem]":
    """Yields the words that follow each other without a gap, beginning with the nearest."""
    last: TextItem | None = None
    for item in items:
        if last is not None:
            left, right = sorted((last, item), key=lambda one: one.x)
            if right.x - left.x - left.width > 2 * max(item.height, 1):
                return
        yield item
        last = item


def _is_beside(item: "TextItem", rect: "AnnotationRect") -> bool:
    middle = item.y + item.height / 2
    return bool(item.text.strip()) and rect.y - 2 <= middle <= rect.y + rect.height + 2


def _is_above(item: "TextItem", rect: "AnnotationRect") -> bool:
    bottom = item.y + item.height
    overlaps = item.x < rect.x + rect.width and item.x + item.width > rect.x
    return bool(item.text.strip()) and overlaps and 0 <= rect.y - bottom + 2 <= _GAP


def _shorten_name(name: str) -> str:
    """The last part of a field's name: `form1[0].#subform[0].Tenant_name[0]` is "Tenant name"."""
    return _PART.sub("", name.rpartition(".")[2]).replace("_", " ").strip()
