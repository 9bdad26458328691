"""Each example of docs/examples works as its page says: its commands, beside a gateway of its own on a free port.

`make check-examples` runs them. A page's blocks say everything: `sh gateway` has the settings that the gateway is
started with, `sh` the commands, one a line, `text` what their output has. Ports of the pages and programs become free
ones; a server at Ollama's port is a scripted one.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from tests.support.processes import ROOT, start
from tests.support.reverse_proxy import find_free_port
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer

EXAMPLES = ROOT / "docs" / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md") if path.parent.name != "stepgate-poems")
OLLAMA, GATEWAY = "11434", "8010"
COMMAND_SECONDS = 180


def find_blocks(page: str, info: str) -> list[str]:
    """The contents of a page's fenced blocks with this info string, as lines."""
    blocks = re.findall(rf"^```{info}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def find_missing_package(page: str) -> str | None:
    """The first package that a page says to install and that is not there."""
    for name in re.findall(r"`pip install ([\w-]+)`", page):
        try:
            distribution(name)
        except PackageNotFoundError:
            return str(name)
    return None


def read_gateway_settings(page: str) -> dict[str, str]:
    """The variables that a page exports before it starts the gateway."""
    exports = [line.removeprefix("export ") for line in find_blocks(page, "sh gateway") if line.startswith("export ")]
    return dict(pair.split("=", 1) for line in exports for pair in line.split())


def replace_ports(folder: Path, ports: dict[str, str]) -> None:
    """Puts other ports into every file of a copied example."""
    for path in folder.rglob("*"):
        if path.is_file():
            text = path.read_text("utf-8")
            for port, other in ports.items():
                text = re.sub(rf"\b{port}\b", other, text)
            path.write_text(text, "utf-8")


@pytest.fixture
def model_url() -> Iterator[str]:
    with ScriptedServer(script(says("Blue."))) as server:
        yield server.url


def test_there_are_ten_and_the_list_names_them() -> None:
    listed = re.findall(r"^\| \[([\w-]+)\]", (EXAMPLES / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted([*NAMES, "stepgate-poems"])
    assert len(NAMES) == 10


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_the_commands_of_an_example_print_what_its_page_says(name: str, tmp_path: Path, model_url: str) -> None:
    page = (EXAMPLES / name / "README.md").read_text("utf-8")
    if missing := find_missing_package(page):
        pytest.skip(f"{name}: the package {missing} is not installed")
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    ports = {port: str(find_free_port()) for port in set(re.findall(r"127\.0\.0\.1:(\d+)", page)) | {GATEWAY}}
    ports |= {OLLAMA: model_url.rpartition(":")[2].removesuffix("/v1")}
    replace_ports(folder, ports)
    page = (folder / "README.md").read_text("utf-8")
    settings = {**read_gateway_settings(page), "AGENT_PORT": ports[GATEWAY], "AGENT_SKILLS_DIRS": "none"}
    clean = {key: value for key, value in os.environ.items() if not key.startswith("AGENT_")}
    environment = {**clean, **settings, "AGENT_DISCOVER": "off", "PYTHONPATH": str(ROOT)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{clean['PATH']}"
    gateway = start([sys.executable, "-m", "gateway.cli", "serve"], environment=environment, cwd=folder, cold=True)
    outputs = []
    try:
        gateway.line_with("Stepgate listens on ", 120)
        for command in find_blocks(page, "sh"):
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=environment, stdout=-1, stderr=-2, text=True,
                timeout=COMMAND_SECONDS, check=False,
            )  # fmt: skip
            outputs.append(f"$ {command}\n{done.stdout}")
            assert done.returncode == 0, outputs[-1]
    finally:
        gateway.kill()
    whole = "\n".join(outputs)
    expected = find_blocks(page, "text")
    assert expected, f"the page of {name} does not say what is printed"
    assert [line for line in expected if line not in whole] == [], whole
