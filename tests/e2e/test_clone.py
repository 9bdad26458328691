"""A clean clone, and the README's two commands in it, as a stranger would run them."""

import os
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.support.processes import ROOT, start

INSIDE = "STEPGATE_TESTS_IN_CLONE"
"""Set while the clone's own tests run: they must not clone again."""

CLEAN = "STEPGATE_TESTS_OF_A_CLEAN_CLONE"
"""Set by `.ci/run`, which does in a clean clone what this test would do in another one."""

pytestmark = [
    pytest.mark.skipif(bool(os.environ.get(INSIDE)), reason="these are the tests of the clone itself"),
    # Two installations take three minutes of a processor; a clean clone has made them already.
    *([] if os.environ.get(CLEAN) else [pytest.mark.long]),
]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.environ.get(CLEAN):
        return ROOT
    folder = tmp_path_factory.mktemp("clone") / "stepgate"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True, timeout=120)
    return folder


def test_make_run_starts_a_gateway_that_answers(clone: Path, tmp_path: Path) -> None:
    settings = {"AGENT_PORT": "0", "AGENT_SKILLS_DIRS": "none", "AGENT_DATA_DIR": str(tmp_path / "data")}
    process = start(["make", "run"], environment=settings, cwd=clone)
    url = process.line_with("Stepgate listens on ", deadline_s=600).rsplit(" ", 1)[1]
    body = {"model": "stepgate", "messages": [{"role": "user", "content": "what is 17.5 * 240 and list files"}]}
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60).json()
    os.killpg(os.getpgid(process.pid), signal.SIGTERM)
    process.wait(60)
    assert "4200" in answer["choices"][0]["message"]["content"]
    assert [step["type"] for step in answer["steps"]][:3] == ["route", "memory", "plan"]


@pytest.mark.skipif(bool(os.environ.get(CLEAN)), reason="`make test` is running in a clean clone already")
def test_make_test_passes(clone: Path) -> None:
    # Format, lint, types and a few tests: all of them have just run outside, on the same commit.
    environment = {INSIDE: "1", "PYTEST_ADDOPTS": "tests/unit/storage tests/unit/trace"}
    process = start(["make", "test"], environment=environment, cwd=clone)
    code = process.wait(900)
    assert code == 0, "\n".join(process.output[-60:])
    assert any(" passed" in line for line in process.output[-10:])
