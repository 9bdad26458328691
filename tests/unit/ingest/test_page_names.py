"""Pictures that a page draws without an image are read by their names, and the measure counts them."""

from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.coverage import measure_coverage
from tests.unit.ingest.test_markdown_html_coverage import lines, read

TABLE = "<table><tr><th>Plan<th>Pro<tr><td>Storage<td>{}</table>"


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("<svg aria-label='Included'><path/></svg>", "Included"),
        ("<svg><title>Included</title><path/></svg>", "Included"),
        ("<i class='fa fa-check' aria-label='Included'></i>", "Included"),
        ("<i role='img' title='Included'> </i>", "Included"),
        ("<span class='Z3988' title='ctx_ver=Z39.88'></span>", ""),
        ("<span role='img' aria-label='4 of 5 stars'></span>", "4 of 5 stars"),
        ("<div role='img' aria-label='4 of 5 stars'><svg aria-hidden='true'/></div>", "4 of 5 stars"),
        ("<span role='img' aria-label='check mark'>Yes</span>", "Yes"),
        ("<svg aria-label='Included' aria-hidden='true'></svg>", ""),
        ("<svg style='display:none' aria-label='Included'></svg>", ""),
        ("<b style='display:none'><i aria-label='Included'></i></b>", ""),
        ("<span aria-hidden='true'><i aria-label='Included'></i></span>", ""),
        ("<button aria-label='Close'></button>", ""),
        ("<button><svg><title>Menu</title></svg></button>", ""),
        ("<button><b><i aria-label='Menu'></i></b></button>", ""),
        ("<a href=/x><svg aria-label='Opens a new tab'></svg></a>", ""),
    ],
)
def test_a_picture_without_text_is_read_by_its_name(markup: str, shown: str, tmp_path: Path) -> None:
    output = read(TABLE.format(markup), "html", tmp_path)
    assert f"| Storage | {shown} |" in "\n".join(lines(output))
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    assert "title" not in output.metadata


@pytest.mark.parametrize("markup", ["<svg><title>Included</title></svg>", "<i aria-label='Included'></i>"])
def test_the_measure_misses_a_name_that_was_not_read(markup: str) -> None:
    coverage = measure_coverage(TABLE.format(markup).encode(), "html", ["| Plan | Pro |", "| Storage | |"])
    assert coverage is not None
    assert coverage.missing == {"names of pictures": 1}


@pytest.mark.parametrize("sign", ["<span aria-label='Link to this'></span>", "<svg><title>Link</title></svg>"])
def test_a_sign_in_a_heading_is_no_part_of_it(sign: str, tmp_path: Path) -> None:
    output = read(f"<h2>Usage{sign}</h2><p>Press it.</p>", "html", tmp_path)
    assert lines(output) == ["Usage", "Press it."]
    assert output.coverage is not None
    assert output.coverage.share == 1.0
