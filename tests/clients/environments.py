"""An environment for each client, outside of the project's own: a virtual environment or a folder of npm packages."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.clients.catalogue import Client
from tests.support.processes import ROOT

FOLDER = ROOT / ".bench" / "clients"
"""Kept between runs. Delete it to install the newest releases."""
NODE = "node@^24"
"""Several clients need a newer Node.js than distributions ship; the npm package `node` holds the program."""
INSTALL_SECONDS = 900


class Environment:
    """The installed packages of one client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.folder = FOLDER / client.name
        self._installed = self.folder / "installed.json"

    def install(self) -> None:
        """Installs the packages, unless these very ones are installed. Raises `CalledProcessError`."""
        wanted = json.dumps([self.client.kind, *self.client.packages])
        if self._installed.is_file() and self._installed.read_text("utf-8") == wanted:
            return
        if self.client.kind == "npm":
            install_npm_packages(self.folder, self.client.packages, path=install_node())
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            uv = str(Path(sys.executable).with_name("uv"))
            run([uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, "."], self.folder)
            run([uv, "pip", "install", "--quiet", "--python", "bin/python", *self.client.packages], self.folder)
        self._installed.write_text(wanted, "utf-8")

    def read_version(self) -> str:
        """The installed version of the client."""
        if self.client.kind == "npm":
            manifest = self.folder / "node_modules" / self.client.package / "package.json"
            return str(json.loads(manifest.read_text("utf-8"))["version"])
        code = f"import importlib.metadata as m; print(m.version({self.client.package!r}))"
        return run(["bin/python", "-c", code], self.folder).strip()

    def build_command(self, script: Path) -> list[str]:
        """The command that runs a script within the environment.

        Scripts for Node.js are copied into it, because a module's place decides where its imports are looked for.
        """
        if self.client.kind == "python":
            return [str(self.folder / "bin" / "python"), str(script)]
        for module in script.parent.glob("*.mjs"):
            shutil.copy(module, self.folder)
        return [str(install_node() / "node"), str(self.folder / script.name)]


def install_node() -> Path:
    """The folder of a Node.js of our own; installs it once."""
    folder = FOLDER / "node"
    programs = folder / "node_modules" / "node" / "bin"
    if not (programs / "node").is_file():
        install_npm_packages(folder, (NODE,), path=None)
    return programs


def install_npm_packages(folder: Path, packages: tuple[str, ...], *, path: Path | None) -> None:
    """Installs packages into `folder`. npm prefers releases for the Node.js it runs on, the first one in `path`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true, "type": "module"}\n', "utf-8")
    run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *packages], folder, path=path)


def run(command: list[str], folder: Path, *, path: Path | None = None, seconds: float = INSTALL_SECONDS) -> str:
    """Runs a command and returns its output. Raises `CalledProcessError`."""
    environment = dict(os.environ) if path is None else {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, timeout=seconds, env=environment
    )
    return done.stdout
