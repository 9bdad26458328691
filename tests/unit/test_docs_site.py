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


def list_dead_links(path: Path) -> list[str]:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL)
    targets = [target for target in LINK.findall(text) if "://" not in target and not target.startswith("mailto:")]
    return [target for target in targets if not (path.parent / target).resolve().exists()]


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_to_files(page: str) -> None:
    assert list_dead_links(ROOT / "docs" / page) == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the site is built from."""
    target = tmp_path_factory.mktemp("docs") / "site"
    spec = importlib.util.spec_from_file_location("prepare", ROOT / "docs" / "site" / "prepare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.prepare(target)
    return target


def test_the_site_has_the_security_page_beside_the_others(site: Path) -> None:
    assert "](../SECURITY.md" in (site / "start" / "team.md").read_text("utf-8")
    assert "](./SECURITY.md" in (site / "sandbox.md").read_text("utf-8")
    assert "](docs/" not in (site / "SECURITY.md").read_text("utf-8")
    assert not (site / "site").exists()


def test_the_links_of_the_site_lead_to_files_of_the_site(site: Path) -> None:
    """The programs of the examples too: the generator checks links among pages only."""
    dead = {page.relative_to(site).as_posix(): list_dead_links(page) for page in site.rglob("*.md")}
    assert {page: targets for page, targets in dead.items() if targets} == {}
