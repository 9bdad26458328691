"""The site has every page of the documentation, and its pages have no link that leads nowhere."""

import importlib.util
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import ROOT

SITE = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
PAGES = sorted(
    path.relative_to(ROOT / "docs").as_posix()
    for path in (ROOT / "docs").rglob("*.md")
    if path.relative_to(ROOT / "docs").parts[0] != "site"
)
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


def iterate_pages(entry: Any) -> Iterator[str]:
    """Yields the pages of a navigation."""
    if isinstance(entry, str):
        yield entry
        return
    for part in entry.values() if isinstance(entry, dict) else entry:
        yield from iterate_pages(part)


def test_every_page_is_in_the_navigation_once() -> None:
    assert sorted(iterate_pages(SITE["nav"])) == sorted([*PAGES, "SECURITY.md"])


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_to_files(page: str) -> None:
    path = ROOT / "docs" / page
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL)
    targets = [target for target in LINK.findall(text) if "://" not in target and not target.startswith("mailto:")]
    assert [target for target in targets if not (path.parent / target).resolve().exists()] == []


def test_the_site_has_the_security_page_beside_the_others(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("prepare", ROOT / "docs" / "site" / "prepare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.prepare(tmp_path / "site")
    assert "](../SECURITY.md" in (tmp_path / "site" / "start" / "team.md").read_text("utf-8")
    assert "](./SECURITY.md" in (tmp_path / "site" / "sandbox.md").read_text("utf-8")
    assert "](docs/" not in (tmp_path / "site" / "SECURITY.md").read_text("utf-8")
    assert not (tmp_path / "site" / "site").exists()
