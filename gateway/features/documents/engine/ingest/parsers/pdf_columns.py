"""Tables of a PDF's page that have no lines, such as opening hours or the totals of an invoice.

liteparse reads some of them column by column, as paragraphs, or merges a row with an empty cell into the one above. The
texts' places give the rows. Blocks are only replaced by a table that has all of their letters.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise, zip_longest
from typing import TYPE_CHECKING

from gateway.features.documents.engine.ingest.parsers.pdf_grids import arrange_grids
from gateway.features.documents.engine.ingest.parsers.pdf_lines import (
    Line,
    Sides,
    iter_runs,
    join_sides,
    list_lines,
    part_names,
)
from gateway.features.documents.engine.ingest.parsers.pdf_parts import (
    AlignedPart,
    Part,
    count_letters,
    is_above,
    is_below,
    iter_paragraphs,
    iter_texts,
    list_region,
    touches,
)

if TYPE_CHECKING:
    from liteparse import LayoutBlock, ParsedPage

_EVEN = 1.35
"""The largest step between lines in smallest ones where rows of one line follow each other: cells of several lines have
larger steps between rows."""
_ROW_GAP = 1.2
"""The smallest step from row to row in the largest one within a row whose cells go on."""
_MAX_LABEL_WORDS, _MAX_CELL_WORDS = 6, 3
"""Words in a cell of the first column and of others, in the mean: columns of prose have more."""
_FIGURES = 0.6
"""Share of a column's cells with digits."""
_MIN_ROWS, _MIN_ROWS_OF_TEXTS = 2, 3
"""Rows of a table, and of one of two columns of which the second has no figures."""
_MAX_COLUMNS = 60
_PROSE_COLUMNS = 2
_MAX_ROW_LINES = 6
"""The most lines of a text in a row with another one."""
_MAX_TABLES = 50
"""On one page."""
_MAX_ABOVE = 16
"""Lines of a run above its table."""
_REPLACED = frozenset({"paragraph", "table"})


def arrange_tables(page: "ParsedPage") -> list[Part]:
    """The blocks of a page, in their order, with its tables without lines as rows."""
    parts = arrange_grids(page)
    if not any(one.kind in _REPLACED for one in page.blocks or ()):
        return parts
    lines = list_lines(page.text_items)
    layout = page.complexity.layout if page.complexity else None
    is_ruled = layout is None or layout.ruled_table_count > 0
    runs = (run for run in map(_part_names, iter_runs(lines)) if sum(len(line.cells) > 1 for line in run) >= _MIN_ROWS)
    for run in islice(runs, _MAX_TABLES):
        parts = _part_columns(_replace_first(parts, run, lines, is_ruled=is_ruled), run, lines)
    return parts


def _replace_first(parts: list[Part], run: Sequence[Line], lines: Sequence[Line], *, is_ruled: bool) -> list[Part]:
    """The parts with the table of a run, which may begin below lines that have several texts beside each other too,
    such as an address."""
    for start in (at for at, line in enumerate(run[:_MAX_ABOVE]) if at == 0 or len(line.cells) > 1):
        below = run[start:]
        replaced = _replace(parts, below, lines, is_ruled=is_ruled) if _find_columns(below) else parts
        if replaced is not parts:
            return replaced
    return parts


def _part_names(run: Sequence[Line]) -> Sequence[Line]:
    """A run whose first line names each column of the others, where its names are as near to each other as words."""
    below = _measure_columns(run[1:])
    if len(below) <= len(run[0].cells if run else ()):
        return run
    names = part_names(run[0])
    return [names, *run[1:]] if len(names.cells) == len(below) else run


def _find_columns(run: Sequence[Line]) -> list[Sides]:
    """The sides of the columns of a table; empty if the lines are not its rows.

    Names may stand beside the values of their columns, or over several: a first line with as many cells as the others
    have columns names them in order.
    """
    if not run:
        return []
    columns = _measure_columns(run)
    below = [] if len(columns) == len(run[0].cells) else _measure_columns(run[1:])
    are_names = bool(below) and (not columns or len(run[0].cells) == len(below))
    return below if are_names and _are_apart(_find_places(below, run[0])) else columns


def _measure_columns(run: Sequence[Line]) -> list[Sides]:
    columns = _join_columns(run)
    full = sum(len(line.cells) > 1 for line in run)
    if not 2 <= len(columns) <= _MAX_COLUMNS or full < _MIN_ROWS:
        return []
    cells: list[list[str]] = [[] for _ in columns]
    for line in run:
        places = _find_places(columns, line)
        if not _are_apart(places):
            return []
        for place, cell in zip(places, line.cells, strict=True):
            cells[place].append(cell.text)
    if len(columns) == 2 and full < _MIN_ROWS_OF_TEXTS and not _holds_figures(cells[1]):
        return []
    return [] if _is_prose(cells) and not _begin_rows(columns, run) else columns


def _are_apart(places: Sequence[int]) -> bool:
    return len(set(places)) == len(places)


def _is_prose(columns: Sequence[Sequence[str]]) -> bool:
    """Whether columns are texts that go on from line to line. Beside a column of figures, one column of long texts is
    of cells; several are prose, which may have a number in most of its lines."""
    first, *others = columns
    long = [_is_long(first, _MAX_LABEL_WORDS), *(_is_long(texts, _MAX_CELL_WORDS) for texts in others)]
    has_figures = len(columns) > 2 and any(map(_holds_figures, others))
    return sum(long) > has_figures


def _is_long(texts: Sequence[str], words: int) -> bool:
    """Whether texts have more words than that in the mean."""
    return sum(len(text.split()) for text in texts) > words * len(texts)


def _begin_rows(columns: Sequence[Sides], run: Sequence[Line]) -> bool:
    """Whether lines that fill the first column begin rows, whose other cells go on in lines that are nearer to them."""
    starts = [0 in _find_places(columns, line) for line in run]
    steps: dict[bool, list[float]] = {True: [], False: []}
    for (above, below), is_start in zip(pairwise(run), starts[1:], strict=True):
        steps[is_start].append(below.top - above.top)
    has_both = len(columns) > 2 and starts[0] and all(steps.values())
    return has_both and min(steps[True]) > _ROW_GAP * max(steps[False])


def _make_rows(columns: Sequence[Sides], run: Sequence[Line]) -> list[list[str]]:
    """The rows of a table: a line each, or several where long texts alone go on in the next line."""
    texts = _list_texts(run, columns) if _begin_rows(columns, run) else []
    long = {place for place, column in enumerate(texts) if place and _is_long(column, _MAX_CELL_WORDS)}
    rows: list[list[str]] = []
    for line in run:
        places = _find_places(columns, line)
        if not long.issuperset(places):
            rows.append([""] * len(columns))
        for place, cell in zip(places, line.cells, strict=True):
            rows[-1][place] = f"{rows[-1][place]} {cell.text}".strip()
    return rows


def _holds_figures(texts: Sequence[str]) -> bool:
    with_digits = sum(any(map(str.isdigit, text)) for text in texts)
    return len(texts) > 1 and with_digits >= _FIGURES * len(texts)


def _holds_short_figures(texts: Sequence[str]) -> bool:
    return _holds_figures(texts) and not _is_long(texts, _MAX_CELL_WORDS)


def _find_places(columns: Sequence[Sides], line: Line) -> list[int]:
    """The column of each cell of a line; those of a full one are in order."""
    if len(line.cells) == len(columns):
        return list(range(len(columns)))
    return [
        next(place for place, (_, right) in enumerate(columns) if cell.left <= right or place == len(columns) - 1)
        for cell in line.cells
    ]


def _replace(parts: list[Part], run: Sequence[Line], lines: Sequence[Line], *, is_ruled: bool) -> list[Part]:
    """The parts with the table of a run; the same ones if it does not have all that they have."""
    top, bottom = run[0].top, run[-1].bottom
    left = min(line.cells[0].left for line in run)
    right = max(line.cells[-1].right for line in run)
    touched = [place for place, part in enumerate(parts) if touches(part, (left, top, right, bottom))]
    blocks = [part for place in touched if not isinstance(part := parts[place], AlignedPart)]
    if not blocks or len(blocks) < len(touched):
        return parts
    own = set(touched)
    between = [parts[at] for at in range(touched[0], touched[-1]) if at not in own]
    before = [one for one in between if is_above(one, top)]
    after = [one for one in between if is_below(one, bottom)]
    if len(before) + len(after) < len(between):
        return parts
    if not all(one.kind in _REPLACED or _is_cell(one, run) for one in blocks):
        return parts
    region = list_region(lines, blocks)
    above = [line for line in region if line.top < top]
    below = [line for line in region if line.top > run[-1].top]
    if any(len(line.cells) > 1 for line in (*above, *below)):
        return parts
    columns = _find_columns(run)
    tables = [one for one in blocks if one.kind == "table"]
    is_split = len(blocks) > len(tables)
    is_mixed = any(_mixes_columns(one, columns, run, figures_only=is_ruled) for one in tables)
    if is_ruled:
        is_misread = is_split and _lacks_row(tables, run, columns)
    else:
        is_misread = _is_misread(tables, run, [*above, *below], columns, is_split=is_split) or any(
            _is_column(one, run, columns) for one in blocks if one.kind != "table"
        )
    if tables and not (is_mixed or is_misread):
        return parts
    if count_letters(item.text for line in region for item in line.items) != count_letters(iter_texts(blocks)):
        return parts
    replaced = [
        *iter_paragraphs(above),
        AlignedPart(_make_rows(columns, run), "", (round(left, 2), round(top, 2), round(right, 2), round(bottom, 2))),
        *iter_paragraphs(below),
    ]
    return [*parts[: touched[0]], *before, *replaced, *after, *parts[touched[-1] + 1 :]]


def _part_columns(parts: list[Part], run: Sequence[Line], lines: Sequence[Line]) -> list[Part]:
    """The parts with the texts of two columns apart, where blocks mix them: as two paragraphs, or as a row for each
    where several stand below each other; the same parts if the run is no such text. Times, dates and other labels with
    figures have rows even where the blocks are apart."""
    columns = _join_columns(run)
    if len(columns) != _PROSE_COLUMNS or _holds_short_figures(_list_texts(run, columns)[1]):
        return parts
    run = [*run, *_list_next(lines, run, columns)]
    box = (columns[0][0], run[0].top, columns[1][1], run[-1].bottom)
    touched = [place for place, part in enumerate(parts) if touches(part, box)]
    blocks = [part for place in touched if not isinstance(part := parts[place], AlignedPart)]
    is_whole = len(blocks) == len(touched) and blocks and len(blocks) == touched[-1] - touched[0] + 1
    if not is_whole:
        return parts
    region = list_region(lines, blocks)
    above = [line for line in region if line.top < run[0].top]
    below = [line for line in region if line.top > run[-1].top]
    labels = _list_texts(run, columns)[0]
    if any(len(line.cells) > 1 for line in (*above, *below)) or all(map(str.isdecimal, labels)):  # numbers of lines
        return parts
    if not _holds_short_figures(labels) and not any(_mixes_texts(one, columns) for one in blocks):
        return parts
    if count_letters(item.text for line in region for item in line.items) != count_letters(iter_texts(blocks)):
        return parts
    rows = _list_rows(run, columns)
    if not rows:
        return parts
    parted = [AlignedPart(rows, "", box)]
    if len(rows) == 1:
        parted = [
            AlignedPart((), text, (left, run[0].top, right, run[-1].bottom))
            for text, (left, right) in zip(rows[0], columns, strict=True)
        ]
    return [
        *parts[: touched[0]],
        *iter_paragraphs(above),
        *parted,
        *iter_paragraphs(below),
        *parts[touched[-1] + 1 :],
    ]


def _list_next(lines: Sequence[Line], run: Sequence[Line], columns: Sequence[Sides]) -> Iterator[Line]:
    """Lines below a run with which its last row goes on: in the second column, or in either where both are long."""
    has_labels = not _is_long(_list_texts(run, columns)[0], _MAX_CELL_WORDS)
    begin = columns[1][0] - 1 if has_labels else columns[0][0] - 1
    step = _EVEN * min(below.top - above.top for above, below in pairwise(run))
    bottom = run[-1].top
    for line in lines:
        if line.top <= run[-1].top:
            continue
        if line.top - bottom > step or line.cells[0].left < begin or _crosses(line, columns):
            return
        bottom = line.top
        yield line


def _join_columns(run: Sequence[Line]) -> list[Sides]:
    return join_sides((cell.left, cell.right) for line in run for cell in line.cells)


def _mixes_texts(block: "LayoutBlock", columns: Sequence[Sides]) -> bool:
    """Whether a text is of both columns."""
    box = block.bbox
    is_wide = box is not None and box.x < columns[0][1] and box.x + box.width > columns[1][0]
    return block.kind in ("paragraph", "heading") and is_wide


def _list_rows(run: Sequence[Line], columns: Sequence[Sides]) -> list[list[str]]:
    """The texts of two columns: a row for each label and what goes on beside it; else parted where a step between lines
    is larger than the smallest one, or whole where they go on for long. Empty where they are too short for texts."""
    labels, others = _list_texts(run, columns)
    if not _is_long(labels, _MAX_CELL_WORDS) and _is_long(others, _MAX_CELL_WORDS):
        groups = _group(run, [0 in _find_places(columns, line) for line in run])
    else:
        steps = [below.top - above.top for above, below in pairwise(run)]
        groups = _group(run, [True, *(step > _ROW_GAP * min(steps) for step in steps)])
        if max(map(len, groups)) > _MAX_ROW_LINES:
            groups = [list(run)]
    rows = [[" ".join(cells) for cells in _list_texts(group, columns)] for group in groups]
    return rows if _is_long([row[1] for row in rows], _MAX_CELL_WORDS) else []


def _group(run: Sequence[Line], starts: Sequence[bool]) -> list[list[Line]]:
    groups: list[list[Line]] = []
    for line, is_start in zip(run, starts, strict=True):
        if is_start or not groups:
            groups.append([])
        groups[-1].append(line)
    return groups


def _is_cell(block: "LayoutBlock", run: Sequence[Line]) -> bool:
    """Whether what is taken for a heading is part of a line with several cells."""
    box = block.bbox
    if block.kind != "heading" or box is None:
        return False
    return any(line.top - 1 <= box.y + box.height / 2 <= line.bottom + 1 and len(line.cells) > 1 for line in run)


def _is_column(block: "LayoutBlock", run: Sequence[Line], columns: Sequence[Sides]) -> bool:
    """Whether a text is the figures of several rows in one column, which belong to what stands beside them."""
    box = block.bbox
    if box is None:
        return False
    beside = [line for line in run if box.y <= (line.top + line.bottom) / 2 <= box.y + box.height]
    places = [at for at, (left, right) in enumerate(columns) if left < box.x + box.width and box.x < right]
    is_parted = len(places) == 1 and sum(len(line.cells) > 1 for line in beside) >= _MIN_ROWS
    return is_parted and _holds_short_figures(_list_texts(beside, columns)[places[0]])


def _lacks_row(tables: Sequence["LayoutBlock"], run: Sequence[Line], columns: Sequence[Sides]) -> bool:
    """Whether a row with figures stands above or below liteparse's table, which has all columns."""
    box = tables[0].bbox if len(tables) == 1 else None
    if box is None or max(map(len, tables[0].rows or [()])) != len(columns):
        return False
    texts = _list_texts(run[1:], columns)
    outside = [line for line in run if not box.y - 1 <= (line.top + line.bottom) / 2 <= box.y + box.height + 1]
    return any(
        _holds_figures(texts[place]) and any(map(str.isdigit, cell.text))
        for line in outside
        for place, cell in zip(_find_places(columns, line), line.cells, strict=True)
    )


def _list_texts(lines: Iterable[Line], columns: Sequence[Sides]) -> list[list[str]]:
    """The texts in each column."""
    texts: list[list[str]] = [[] for _ in columns]
    for line in lines:
        for place, cell in zip(_find_places(columns, line), line.cells, strict=True):
            texts[place].append(cell.text)
    return texts


def _mixes_columns(table: "LayoutBlock", columns: Sequence[Sides], run: Sequence[Line], *, figures_only: bool) -> bool:
    """Whether liteparse's table has values of several columns in one: each row has only one of them, as one of a debit
    and a credit."""
    texts = _list_texts(run[1:], columns)
    compared = {place for place, column in enumerate(texts) if not figures_only or _holds_figures(column)}
    for cells in zip_longest(*(table.rows or [])):
        middles = [one.bbox.x + one.bbox.width / 2 for one in cells if one is not None and one.bbox and one.text]
        own = {at for at, (left, right) in enumerate(columns) for middle in middles if left <= middle <= right}
        if len(own & compared) > 1:
            return True
    return False


def _is_misread(
    tables: Sequence["LayoutBlock"],
    run: Sequence[Line],
    others: Sequence[Line],
    columns: Sequence[Sides],
    *,
    is_split: bool,
) -> bool:
    """Whether liteparse's table lacks a column, which is a paragraph (`is_split`), lacks a row although no cell has
    several lines, or has a sentence beside it cut into cells."""
    height = min(line.height for line in run)
    steps = [below.top - above.top for above, below in pairwise(run)]
    gaps = [below.top - above.bottom + height for above, below in pairwise(run)]  # where some rows are of several lines
    is_even = any(max(one) <= _EVEN * min(one) for one in (steps, gaps))
    box = tables[0].bbox if tables else None
    if len(tables) > 1 or box is None or not is_even:
        return False
    inside = [line for line in others if box.y - 1 <= (line.top + line.bottom) / 2 <= box.y + box.height + 1]
    if not all(_crosses(line, columns) for line in inside):  # more lines of a cell
        return False
    rows = len(tables[0].rows or ()) + bool(tables[0].header)
    return is_split or bool(inside) or rows < len(run)


def _crosses(line: Line, columns: Sequence[Sides]) -> bool:
    """Whether a text runs over several columns."""
    return sum(line.cells[0].left <= right and left <= line.cells[-1].right for left, right in columns) > 1
