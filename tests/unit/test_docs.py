"""The documents say what the code does."""

import re

import pytest

from gateway.cli import COMMANDS
from gateway.feature_loader import load_features
from gateway.reference_pages import PAGES
from tests.support.processes import ROOT


@pytest.mark.parametrize("name", sorted(PAGES))
def test_reference_pages_are_what_the_code_says(name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == PAGES[name](), "run `make docs`"


def test_the_readme_names_every_command_and_only_those() -> None:
    block = re.findall(r"^    stepgate ([\w-]+)", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert set(block) == {*COMMANDS, *load_features("", with_installed=False).list_commands()}


def test_no_file_names_an_index_or_a_path_of_some_machine() -> None:
    import subprocess

    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in (".py", ".md", ".toml", ".lock", ".yaml", "") and path.is_file():
            text = path.read_text("utf-8", errors="replace")
            assert not re.search(r"--index-url|https?://[^ ]*/simple\b|/root/|/work/", text) or name == THIS, name


THIS = "tests/unit/test_docs.py"
