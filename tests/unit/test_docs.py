"""The documents say what the code does."""

import re

import pytest

from agent.core.settings import Settings
from gateway.api_reference_page import load_document, make_anchor
from gateway.app import create_app
from gateway.cli import COMMANDS
from gateway.feature_loader import load_features
from gateway.reference_pages import PAGES
from tests.support.doc_pictures import IMAGES, list_shown_pictures
from tests.support.processes import ROOT

STARTS = [path.stem for path in (ROOT / "docs" / "start").glob("*.md")]
SERVED_BY_EXTRAS = {"/a2a", "/.well-known/agent-card.json"}


@pytest.mark.parametrize("name", sorted(PAGES))
def test_reference_pages_are_what_the_code_says(name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == PAGES[name](), "run `make docs`"


def test_the_page_of_commands_has_every_command_and_only_those() -> None:
    text = (ROOT / "docs" / "commands.md").read_text("utf-8")
    named = set(re.findall(r"^## stepgate ([\w-]+)$", text, re.MULTILINE))
    assert named == {*COMMANDS, *load_features("", with_installed=False).list_commands()}
    assert "### stepgate mcp install" in text


def test_the_page_of_endpoints_has_every_operation_and_links_to_its_section() -> None:
    listed = re.findall(
        r"^\| \[`(\w+ /\S*)`\]\(api\.md#(\S*?)\)", (ROOT / "docs" / "endpoints.md").read_text("utf-8"), re.MULTILINE
    )
    operations = {
        f"{method.upper()} {path}" for path, methods in load_document()["paths"].items() for method in methods
    }
    headings = re.findall(r"^### (.*)$", (ROOT / "docs" / "api.md").read_text("utf-8"), re.MULTILINE)
    assert {title for title, _ in listed} == operations
    assert {anchor for _, anchor in listed} <= {make_anchor(heading) for heading in headings}


@pytest.mark.parametrize(
    "page", ["README.md", "docs/endpoints.md", *sorted(f"docs/start/{name}.md" for name in STARTS)]
)
def test_the_paths_of_a_first_page_are_served(page: str) -> None:
    """A page that promises an endpoint which is not there sends its reader into a 404."""
    text = (ROOT / page).read_text("utf-8")
    promised = {*re.findall(r"`(/[\w./{}-]+)`", text), *re.findall(r"127\.0\.0\.1:8010(/[\w./-]+)", text)}
    served = {getattr(route, "path", "") for route in create_app(Settings()).routes} | SERVED_BY_EXTRAS
    patterns = [re.sub(r"\{\w+(:\w+)?\}", "[^/]+", path) for path in served]
    assert [
        path
        for path in promised
        if not any(re.match(f"{one}(/|$)", path) or one.startswith(f"{path}/") for one in patterns if one != "/")
    ] == []


def test_the_settings_that_a_page_names_exist() -> None:
    """A name that is not a setting has no effect: what it should have switched on stays off."""
    name = re.compile(r"\bAGENT_[A-Z\d_]+")
    settings = set(name.findall((ROOT / "docs" / "settings.md").read_text("utf-8")))
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/[!e]*/*.md")]  # examples have their own
    named = {(path.name, one.removesuffix("_FILE")) for path in pages for one in name.findall(path.read_text("utf-8"))}
    assert len(named) > 100
    assert sorted((page, one) for page, one in named if not settings & {one, f"{one}_FILE"}) == []


def test_the_readme_is_short_and_shows_three_pictures() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.split()) <= 600
    assert len(re.findall(r"^!\[", text, re.MULTILINE)) == 3
    for target in re.findall(r"\]\(([^)#:]+)", text):
        assert (ROOT / target).exists(), target


def test_each_picture_of_the_documentation_is_shown_by_a_page() -> None:
    assert sorted(path.name for path in IMAGES.iterdir()) == sorted(list_shown_pictures())


def test_no_file_names_an_index_or_a_path_of_some_machine() -> None:
    import subprocess

    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in (".py", ".md", ".toml", ".lock", ".yaml", "") and path.is_file():
            text = path.read_text("utf-8", errors="replace")
            assert not re.search(r"--index-url|https?://[^ ]*/simple\b|/root/|/work/", text) or name == THIS, name


THIS = "tests/unit/test_docs.py"
