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


def python(requirements: Path = REQUIREMENTS) -> Path:
    """The interpreter of a peer's environment; another list of versions is another environment."""
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    return ROOT / ".bench" / f"peer-{digest}" / "bin" / "python"


@functools.cache
def missing(requirements: Path = REQUIREMENTS) -> str | None:
    """None when a peer can be run, after installing it where that was not done yet; else why not, in one line."""
    interpreter = python(requirements)
    if (interpreter.parent / "installed").exists():
        return None
    folder = interpreter.parents[1]
    try:
        _quietly([sys.executable, "-m", "venv", str(folder)])
        _quietly([str(interpreter), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(requirements)])
    except subprocess.TimeoutExpired:
        reason = f"its installation took more than {INSTALL_SECONDS} s"
    except subprocess.CalledProcessError as error:
        reason = (str(error.stderr).strip().splitlines() or ["pip failed"])[-1][:60]
    else:
        (interpreter.parent / "installed").touch()
        return None
    shutil.rmtree(folder, ignore_errors=True)
    return f"no peer: {reason}"


def _quietly(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
