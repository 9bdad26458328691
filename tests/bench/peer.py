"""The peer's environment: a venv of its own in `.bench/`, made once from `peer-requirements.txt`."""

import functools
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.processes import ROOT

REQUIREMENTS = Path(__file__).with_name("peer-requirements.txt")
INSTALL_SECONDS = 120


def name() -> str:
    """The framework and its version."""
    return next(line for line in REQUIREMENTS.read_text("utf-8").splitlines() if line.startswith("pydantic-ai-slim"))


def python() -> Path:
    """The interpreter of the peer's environment; another list of versions is another environment."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    return ROOT / ".bench" / f"peer-{digest}" / "bin" / "python"


@functools.cache
def missing() -> str | None:
    """None when the peer can be run, after installing it where that was not done yet; else why not, in one line."""
    if (python().parent / "installed").exists():
        return None
    folder = python().parents[1]
    try:
        _quietly([sys.executable, "-m", "venv", str(folder)])
        _quietly([str(python()), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(REQUIREMENTS)])
    except subprocess.TimeoutExpired:
        reason = f"its installation took more than {INSTALL_SECONDS} s"
    except subprocess.CalledProcessError as error:
        reason = (str(error.stderr).strip().splitlines() or ["pip failed"])[-1][:60]
    else:
        (python().parent / "installed").touch()
        return None
    shutil.rmtree(folder, ignore_errors=True)
    return f"no peer: {reason}"


def _quietly(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
