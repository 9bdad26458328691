"""A built wheel, installed into an empty environment as pipx and uvx do, runs a gateway."""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.processes import ROOT

MAX_MB = 700
"""The environment of a wheel; `make run`, which is pinned, has 600 (docs/install.md)."""
UV = Path(sys.executable).with_name("uv")


def run(*words: str | Path, **environment: str) -> str:
    """Runs a command without this repository on its path, and returns its output."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AGENT_"))}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=environment.pop("cwd", ROOT),
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


@pytest.mark.long
def test_a_wheel_serves_from_an_empty_environment(tmp_path: Path) -> None:
    place = str(tmp_path)
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist")
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    run(UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "env")
    program, python = tmp_path / "env" / "bin" / "stepgate", tmp_path / "env" / "bin" / "python"
    run(UV, "pip", "install", "--quiet", "--python", python, wheel)
    size = sum(path.lstat().st_size for path in (tmp_path / "env").rglob("*") if path.is_file()) / 1_000_000
    assert size < MAX_MB
    assert run(program, "--version", cwd=place).startswith("stepgate ")
    assert '"url": "http://127.0.0.1:8010/mcp"' in run(program, "mcp", "install", "cursor", "--print", cwd=place)
    report = run(program, "doctor", cwd=place, AGENT_PORT="0")
    assert "not installed: " in report
    assert "postgres (the store on PostgreSQL" in report

    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AGENT_"))}
    with subprocess.Popen(
        [program, "serve", "--port", "0"], cwd=tmp_path, env=clean, stderr=subprocess.PIPE, text=True
    ) as gateway:
        try:
            assert gateway.stderr is not None
            found = re.search(r"http://\S+", gateway.stderr.readline())
            assert found is not None
            body = {"prompt": "What is 6*7?"}
            answer = httpx.post(f"{found.group()}/v1/agent", json=body, timeout=60).json()
            uploaded = httpx.post(
                f"{found.group()}/v1/documents",
                files={"file": ("a.md", b"# Lost\n\nReport it.\n")},
                data={"collection": "it"},
                timeout=120,
            )
        finally:
            gateway.terminate()
    assert "42" in answer["response"]
    assert uploaded.status_code in (200, 201), uploaded.text
