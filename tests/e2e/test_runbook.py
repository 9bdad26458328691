"""What the runbook tells an operator to type works as it is written: through a shell."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.support import postgres, warm
from tests.support.processes import GatewayProcess

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = re.findall(r"^ {4}(\S.*)$", (ROOT / "docs" / "runbook.md").read_text("utf-8"), re.MULTILINE)
POSTGRES = ("pg_dump", "createdb", "pg_restore")
SERVES = " stepgate serve"
SETTING = re.compile(r"(AGENT_OBJECTS|AWS)_\w+=\S+(\s+#.*)?")
"""Not a command; what the settings do is tried in tests/e2e/test_objects.py."""


def shell(command: str, folder: Path, answer: str = "", *, installed: bool = False, **environment: str) -> str:
    """What a command prints, typed in a folder of its own; AssertionError where it fails. `stepgate` is the installed
    command, or one that begins with its imports done."""
    place = Path(sys.executable).parent if installed else make_quick_command(folder / "bin")
    path = f"{place}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, input=answer, capture_output=True, text=True, timeout=120, check=False,
        env={"PATH": path, "HOME": str(folder), "AGENT_DATA_DIR": str(folder / "data"), **environment},
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def make_quick_command(folder: Path) -> Path:
    """The folder with a command `stepgate` in it."""
    folder.mkdir(exist_ok=True)
    program = folder / "stepgate"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(warm.command("gateway.cli"))} "$@"\n')
    program.chmod(0o755)
    return folder


def test_every_command_is_tried() -> None:
    ours = [
        one
        for one in COMMANDS
        if one.startswith(("stepgate ", "make soak ", *POSTGRES)) or SERVES in one or SETTING.fullmatch(one)
    ]
    assert ours == COMMANDS


@pytest.mark.row("S004-53")
def test_the_commands_of_the_runbook_do_what_it_says(tmp_path: Path) -> None:
    if not (Path(sys.executable).parent / "stepgate").exists():
        pytest.skip("the command `stepgate` is not installed beside this Python: run `make`")
    key = ""
    told: dict[str, str] = {}
    with GatewayProcess(tmp_path / "data"):
        pass  # the store is made
    for written in COMMANDS:
        if not written.startswith("stepgate "):
            continue
        command = written.replace("/backups", str(tmp_path)).replace("4f6A...", key)
        told[written] = shell(command, tmp_path, answer="y\n", installed=not told)
        if "keys create" in written:
            (key,) = re.findall(r"sg_([^_\s]+)_", told[written])
    listed = next(text for command, text in told.items() if command == "stepgate keys list")
    assert key in listed
    assert (tmp_path / "audit.jsonl").read_text("utf-8").count("\n") >= 3, "made, revoked, removed"
    assert list((tmp_path / "data").glob("replaced-*")), "what was there before the restore"


@pytest.mark.row("S004-53")
def test_the_dump_of_the_runbook_is_restored(tmp_path: Path) -> None:
    missing = [name for name in POSTGRES if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not on this machine: {', '.join(missing)} (apt-get install postgresql-client)")
    with postgres.fresh_database() as url:
        server = urlsplit(url)
        copy = f"{server.path[1:]}_monday"
        shell("stepgate keys create laptop --owner anna", tmp_path, AGENT_DATABASE_URL=url)
        try:
            for written in COMMANDS:
                if written.startswith(POSTGRES):
                    command = written.replace("/backups", str(tmp_path)).replace("stepgate_monday", copy)
                    command = command.replace("--host=db.example.com", f"--host={server.hostname} --port={server.port}")
                    command = command.replace("db.example.com", f"{server.hostname}:{server.port}")
                    shell(command, tmp_path, AGENT_DATABASE_URL=url)
            listed = shell("stepgate keys list", tmp_path, AGENT_DATABASE_URL=url.replace(server.path, f"/{copy}"))
        finally:
            with psycopg.connect(postgres.ADMIN, autocommit=True) as admin:
                admin.execute(f'DROP DATABASE IF EXISTS "{copy}" WITH (FORCE)')
    assert "anna" in listed


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.startswith("make ")])
def test_make_knows_its_words(command: str, tmp_path: Path) -> None:
    said = subprocess.run(
        ["/bin/sh", "-c", command.replace("make ", "make --dry-run ", 1)], cwd=ROOT, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert all(word.partition("=")[2] in said.stdout for word in command.split()[2:])
