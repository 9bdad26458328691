"""The built wheel: it works outside a clone, adds no folder but its packages, and leaves the evaluation out."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from gateway.feature_loader import find_folder, load_features
from gateway.feature_page import collect_page
from tests.support.processes import ROOT

LIST_ROOMS = """
from gateway.packaged_files import PACKAGE_ROOT
print(PACKAGE_ROOT, *sorted(path.stem for path in PACKAGE_ROOT.glob("config/rooms/*.yaml")))
"""


def start_python(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs a Python that finds the wheel's packages before the clone's."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_")}
    environment |= {"PYTHONPATH": str(folder / "site"), "AGENT_DATA_DIR": str(folder / "data")}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def run_python(folder: Path, *arguments: str) -> str:
    """What it prints."""
    done = start_python(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_goes_into_the_wheel_is_the_packages_without_the_evaluation() -> None:
    names = [file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()]
    assert {name.split("/")[0] for name in names} == {"agent", "gateway", "mcp_tools"}
    assert "gateway/app.py" in names
    assert not [name for name in names if name.startswith("gateway/features/evaluation/")]
    folders = map(find_folder, collect_page(load_features("", with_installed=False)).folders.values())
    page = {path.relative_to(ROOT).as_posix() for folder in folders for path in folder.iterdir()}
    assert "gateway/features/schedules/page/schedules.js" in page
    assert page <= set(names)


@pytest.mark.long
def test_the_wheel_brings_its_rooms_and_skills(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        folders = {name.split("/")[0] for name in files.namelist()}
        files.extractall(tmp_path / "site")
    assert {name for name in folders if not name.endswith(".dist-info")} == {"agent", "gateway", "mcp_tools"}
    assert "summarize" in run_python(tmp_path, "-m", "gateway", "skills", "list")
    shipped, *rooms = run_python(tmp_path, "-c", LIST_ROOMS).split()
    assert Path(shipped).is_relative_to(tmp_path), "the clone was not used"
    assert rooms == sorted(path.stem for path in (ROOT / "config" / "rooms").glob("*.yaml"))
    evaluation = start_python(tmp_path, "-m", "gateway", "eval")
    assert (evaluation.returncode, evaluation.stdout) == (1, "")
    assert "in a clone of the repository only" in evaluation.stderr
    assert not list(tmp_path.glob("site/**/evaluation"))
    report = start_python(tmp_path, "-m", "gateway", "doctor").stdout
    assert "make dev" not in report
    assert "evaluation" not in report
