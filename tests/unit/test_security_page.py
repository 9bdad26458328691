"""Every promise of SECURITY.md names its code and a test, and what it names is there."""

import re

import pytest

from tests.support.processes import ROOT

PAGE = (ROOT / "SECURITY.md").read_text("utf-8")
PROMISES = re.split(r"\n- ", PAGE.partition("\n## Promises\n")[2].partition("\n## ")[0])[1:]
NAMED = re.compile(r"`((?:agent|gateway|mcp_tools|tests|docs|skills|config)/[\w./-]+)`")
TEST = re.compile(r"^ *(?:async )?def test_\w+\(|^class Test\w+|_contract import", re.MULTILINE)


def list_named(promise: str) -> list[str]:
    return NAMED.findall(promise)


def get_title(promise: str) -> str:
    return " ".join(promise.split())[:40]


@pytest.mark.parametrize("promise", PROMISES, ids=get_title)
def test_a_promise_names_a_test_that_exists(promise: str) -> None:
    tests = [ROOT / name for name in list_named(promise) if name.startswith("tests/")]
    assert tests, "name the test that holds this promise, as `tests/...py`"
    assert [path.name for path in tests if not path.is_file() or not TEST.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("promise", PROMISES, ids=get_title)
def test_the_code_that_a_promise_names_exists(promise: str) -> None:
    named = [name.rstrip("/") for name in list_named(promise)]
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_page_has_promises() -> None:
    """A heading that was renamed would leave nothing to check."""
    assert len(PROMISES) > 20


def test_tests_are_named_with_their_folder() -> None:
    """A bare name is not found by this check."""
    assert re.findall(r"`test_\w+\.py`", PAGE) == []
