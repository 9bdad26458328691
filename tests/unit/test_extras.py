"""The optional parts of an installation are those of pyproject.toml, and a missing one is reported as missing."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agent.core import extras
from agent.core.extras import EXTRAS, Extra, format_install_command, format_install_hint, list_extras
from tests.support.processes import ROOT


def test_every_optional_part_for_users_is_described() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"all", "build", "dev"}


def test_all_parts_at_once_are_all_but_the_one_with_bounds_of_its_own() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.findall(r"[\w-]+", everything.removeprefix("stepgate"))) == set(EXTRAS) - {"eval"}


def test_a_part_is_installed_if_all_its_modules_are() -> None:
    assert Extra(("json",), "").is_installed
    assert not Extra(("json", "no_such_module"), "").is_installed
    assert not Extra(("no_such_package.module",), "").is_installed
    assert "stepgate[otel]" in format_install_hint("otel")


def test_a_clone_and_a_wheel_say_what_works_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip` on PATH is another environment's where pipx or uv made Stepgate's; a wheel comes without a Makefile."""
    assert "make dev" in format_install_hint("otel")
    assert "eval" in list_extras()
    monkeypatch.setattr(extras, "IN_CLONE", False)
    assert "make dev" not in format_install_hint("otel")
    assert "stepgate doctor" in format_install_hint("otel")
    assert "eval" not in list_extras()


@pytest.mark.parametrize(
    ("pip", "beginning"), [(object(), "{} -m pip install "), (None, "uv pip install --python {} ")]
)
def test_the_command_names_the_environment_that_is_running(
    monkeypatch: pytest.MonkeyPatch, pip: object, beginning: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: pip if name == "pip" else None)
    assert format_install_command("otel") == beginning.format(sys.executable) + "'stepgate[otel]'"


def list_install_commands() -> list[tuple[str, str]]:
    """The commands in the documentation that install Stepgate or a part of it, with their pages."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs" / "deploy").iterdir())]
    pattern = re.compile(r"[^\s`]*\b(?:pip|pipx|uvx|uv|python)\b[^`\n|&]* \S*stepgate(?:-\*|\[)[^`\n|&#]*")
    return [
        (page.name, command.strip())
        for page in dict.fromkeys(pages)
        for command in pattern.findall(page.read_text("utf-8"))
        if "models" not in command
    ]


@pytest.mark.parametrize(("page", "command"), list_install_commands())
def test_a_documented_command_installs_the_wheel_that_was_built_or_into_the_own_environment(
    tmp_path: Path, page: str, command: str
) -> None:
    if re.search(r"'stepgate\[", command):  # a name that an index elsewhere would look up
        assert command.startswith(".venv/bin/python -m pip "), f"{page}: {command}"
        return
    wheel = tmp_path / "dist" / "stepgate-0.1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    shown = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {command.strip()}"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    named = [re.sub(r"\[[\w,-]+\]$", "", word) for word in shown.stdout.splitlines() if ".whl" in word]
    assert named, f"{page}: {command}"
    assert all((tmp_path / word).is_file() for word in named), f"{page}: {command}"


def test_the_documentation_installs_wheels_and_parts() -> None:
    commands = [command for _, command in list_install_commands()]
    for beginning in ("pipx install dist/", "uvx --from dist/", 'pip install "$(echo dist/'):
        assert any(command.startswith(beginning) for command in commands), beginning


def test_what_runs_needs_is_part_of_the_development_lock() -> None:
    running, all_of_it = [
        set(re.findall(r"(?m)^[\w.\[\]-]+==\S+", (ROOT / name).read_text("utf-8")))
        for name in ("requirements.lock", "requirements-dev.lock")
    ]
    assert running < all_of_it
    assert not [
        name for name in running if name.startswith(("onnx", "langgraph", "opentelemetry-sdk", "mypy", "pytest"))
    ]
