"""The optional parts of an installation are those of pyproject.toml, and a missing one is reported as missing."""

import re
import tomllib

from agent.core.extras import EXTRAS, Extra, format_install_hint
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


def test_what_runs_needs_is_part_of_the_development_lock() -> None:
    running, all_of_it = [
        set(re.findall(r"(?m)^[\w.\[\]-]+==\S+", (ROOT / name).read_text("utf-8")))
        for name in ("requirements.lock", "requirements-dev.lock")
    ]
    assert running < all_of_it
    assert not [
        name for name in running if name.startswith(("onnx", "langgraph", "opentelemetry-sdk", "mypy", "pytest"))
    ]
