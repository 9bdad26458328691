"""The environments of peers: for each a venv of its own in `.bench/`, made once from its pinned requirements."""

import functools
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.processes import ROOT

INSTALL_SECONDS = 600
"""LiteLLM's proxy brings 740 MB; on two busy cores its installation takes minutes."""
REASON_CHARS = 100


def find_requirements(peer: str) -> Path:
    """The file of a peer's pinned requirements."""
    return Path(__file__).with_name(f"{peer}-peer-requirements.txt")


def read_version(package: str, requirements: Path) -> str:
    """The package with its pinned version, such as `langgraph 1.2.22`."""
    lines = requirements.read_text("utf-8").splitlines()
    return next(line for line in lines if line.startswith(f"{package}==")).removesuffix(" \\").replace("==", " ")


def python(requirements: Path) -> Path:
    """The interpreter of a peer's environment; another list of versions is another environment."""
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    return ROOT / ".bench" / f"peer-{digest}" / "bin" / "python"


@functools.cache
def missing(requirements: Path, module: str = "sys") -> str | None:
    """None when a peer can be run, after installing it where that was not done yet; else why not, in one line.

    `module` is imported once after the installation, to see whether what was installed works here."""
    interpreter = python(requirements)
    if (interpreter.parent / "installed").exists():
        return None
    folder = interpreter.parents[1]
    print(
        f"installing {requirements.stem.removesuffix('-requirements')} into .bench (once)", file=sys.stderr, flush=True
    )
    try:
        _quietly([sys.executable, "-m", "venv", str(folder)])
        _quietly([str(interpreter), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(requirements)])
        _quietly([str(interpreter), "-c", f"import {module}"])
    except subprocess.TimeoutExpired:
        reason = f"its installation took more than {INSTALL_SECONDS} s"
    except subprocess.CalledProcessError as error:
        reason = (str(error.stderr).strip().splitlines() or ["pip failed"])[-1][:REASON_CHARS]
    except OSError as error:
        reason = str(error)[:REASON_CHARS]
    else:
        (interpreter.parent / "installed").touch()
        return None
    shutil.rmtree(folder, ignore_errors=True)
    return f"no peer: {reason}"


def _quietly(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
