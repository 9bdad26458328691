"""Rules of style sheets under `@supports`, and `:where`: what they show is read, what they hide is not."""

from pathlib import Path

import pytest
import tinycss2  # type: ignore[import-untyped]

from agent.text.html.feature_queries import is_supported
from gateway.features.documents.engine.ingest.coverage.feature_conditions import is_everywhere
from tests.unit.ingest.test_markdown_html_coverage import lines, read

SENTENCE = "<p>A page with a sentence that is long enough to be read.</p>"
FULFILLED = [
    "(display: grid)",
    "(gap: 1rem)",
    "(--a: 0)",
    "not (-ms-ime-align: auto)",
    "selector(:has(a))",
    "(position: -webkit-sticky) or (position: sticky)",
    "((display: grid) and (gap: 1px)) or (foo: bar)",
    "(width: min(1px, 2px))",
]
OPEN = [
    "(foo: bar)",
    "not (foo: bar)",
    "not (display: grid)",
    "(-ms-ime-align: auto)",
    "(display: grid) and (foo: bar)",
    "(display: grid) and (not (display: inline-grid))",
    "(display: grid) and (gap: 1px) or (foo: bar)",
    "(-moz-appearance: none)",
    "selector(:-moz-any(a))",
    "font-tech(color-colrv1)",
]


def room(number: int, style: str, tmp_path: Path) -> str:
    page = f"<html><style>{style}</style>{SENTENCE}<p class=k>Room {number}</p></html>"
    output = read(page, "html", tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {}
    assert ("text hidden by style sheets" in output.coverage.omitted) != (f"Room {number}" in lines(output))
    return lines(output)[-1]


@pytest.mark.parametrize("condition", FULFILLED)
def test_rules_for_what_each_browser_has_show_and_hide(condition: str, tmp_path: Path) -> None:
    shown = f".k{{display:none}} @supports {condition} {{.k{{display:block}}}}"
    assert room(701, shown, tmp_path) == "Room 701"
    assert room(700, f"@supports {condition} {{.k{{display:none}}}}", tmp_path) != "Room 700"


@pytest.mark.parametrize("condition", OPEN)
def test_rules_for_what_some_browsers_have_change_nothing(condition: str, tmp_path: Path) -> None:
    shown = f".k{{display:none}} @supports {condition} {{.k{{display:block}}}}"
    assert room(700, shown, tmp_path) != "Room 700"
    assert room(701, f"@supports {condition} {{.k{{display:none}}}}", tmp_path) == "Room 701"


@pytest.mark.parametrize("condition", ["(" * 5_000, "not " * 5_000, "(a:b) and " * 5_000, ""])
def test_endless_conditions_are_unknown(condition: str) -> None:
    assert is_everywhere(condition) is None
    assert is_supported(tinycss2.parse_component_value_list(condition[:900])) is None


@pytest.mark.parametrize(
    ("style", "is_shown"),
    [
        (":where(.k, .m){display:none} p{display:block}", True),
        ("p:where(.k){display:none}", False),
        (":where(p.k){display:none}", False),
        (".k{display:block} :where(#x, .k){display:none}", True),
        (":where(html) .k{display:none}", False),
    ],
)
def test_where_selects_and_weighs_nothing(style: str, is_shown: bool, tmp_path: Path) -> None:
    number = 701 if is_shown else 700
    assert (room(number, style, tmp_path) == f"Room {number}") == is_shown
