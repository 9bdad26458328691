"""Pictures and ticks of a page in the places where people see them: within a line, in a cell, before a task."""

from pathlib import Path

import pytest

from tests.unit.ingest.test_markdown_html_coverage import lines, read
from tests.unit.ingest.test_pdf_slides_coverage import complete

TASKS = """<ul><li><div role="checkbox" aria-checked="true">Pay rent</div></li>
<li><div class="checkbox checkbox-off"></div> <span>Call Birch</span></li></ul>
<table><tr><th>Task<th>Done</tr><tr><td>Login<td><i role="switch" aria-checked="true"></i></tr>
<tr><td>Export<td><div class="checkbox checkbox-off"></div></tr></table>"""


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ('<p>The volume is <img alt="V = abc">, about 4.2.</p>', ["The volume is [image: V = abc], about 4.2."]),
        ('<p>Status: <img alt="\u2705"> done</p>', ["Status: \u2705 done"]),
        ('<p><img alt="\U0001f680"> Launch on 3 May</p>', ["\U0001f680 Launch on 3 May"]),
        ('<p><img alt="A portrait of Lou"> Lou was born.</p>', ["Lou was born.", "[image: A portrait of Lou]"]),
        ('<p>Two:</p><p><img alt="one"><img alt="two"></p>', ["Two:", "[image: one]", "[image: two]"]),
        ("<p><b>Rent:</b>\n<i>900</i></p>", ["Rent: 900"]),
    ],
)
def test_a_picture_within_a_line_stays_there(page: str, expected: list[str], tmp_path: Path) -> None:
    output = read(page.encode(), "html", tmp_path)
    assert lines(output) == expected
    assert complete(output)


def test_ticks_that_are_no_inputs_are_read(tmp_path: Path) -> None:
    output = read(TASKS.encode(), "html", tmp_path)
    assert lines(output) == [
        "- ☒ Pay rent",
        "- ☐ Call Birch",
        "| Task | Done |\n| --- | --- |\n| Login | ☒ |\n| Export | ☐ |",
    ]
    assert complete(output)


def test_a_class_of_text_is_no_tick(tmp_path: Path) -> None:
    assert lines(read(b'<p class="checkbox-on">Rent is due.</p>', "html", tmp_path)) == ["Rent is due."]


def test_a_cell_that_is_ticked_itself_stays_a_cell(tmp_path: Path) -> None:
    page = b"<table><tr><th>Paid<th>Who</tr><tr><td role=checkbox aria-checked=true></td><td>Lou</tr></table>"
    page += b"<ul><li class=checkbox-off></li><li>Bo</li></ul>"
    assert lines(read(page, "html", tmp_path)) == ["| Paid | Who |\n| --- | --- |\n| ☒ | Lou |", "- ☐", "- Bo"]
