"""The commands of the four first pages work as they are written, one after the other, beside a fresh gateway."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import Serve
from tests.support.processes import ROOT

HERE = "http://127.0.0.1:8010"
EXPECTED = {
    "home": ("4200", "security@corp.example"),
    "ide": ('"mcpServers"', '"servers"', '"type": "http"'),
    "team": ("sg_", "anna", "bob"),
    "developers": ("4200", '"object":"list"', '"openapi"'),
}
"""What the output of each page's commands has."""


def read_commands(page: str) -> list[str]:
    """The commands of a page's `sh` blocks, in order."""
    text = (ROOT / "docs" / "start" / f"{page}.md").read_text("utf-8")
    return [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]


@pytest.mark.long
@pytest.mark.parametrize("page", sorted(EXPECTED))
async def test_the_commands_of_a_page_work(serve: Serve, tmp_path: Path, page: str) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{clean['PATH']}"
    environment = {**clean, "PATH": path, "PYTHONPATH": str(ROOT), "AGENT_SKILLS_DIRS": "none"}
    outputs = []
    async with serve() as url:
        for command in read_commands(page):
            process = await asyncio.create_subprocess_shell(
                command.replace(HERE, url), cwd=tmp_path, env=environment, stdout=-1, stderr=asyncio.subprocess.STDOUT
            )
            output, _ = await asyncio.wait_for(process.communicate(), 120)
            outputs.append(output.decode())
            assert process.returncode in (0, 1 if command == "stepgate doctor" else 0), (command, outputs[-1])
    whole = "\n".join(outputs)
    assert [part for part in EXPECTED[page] if part not in whole and part not in whole.replace('": ', '":')] == []
