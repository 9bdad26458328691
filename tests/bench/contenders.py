"""Who is measured: Stepgate, the floor and the peer. Each is a process behind the same door, doing the same work."""

import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench import peer
from tests.support.processes import Process, start
from tests.support.script import Script
from tests.support.scripted_server import ScriptedServer

STEPGATE, FLOOR, PEER = "stepgate", "floor", "peer"

ROOMS = {
    "turn": "name: a planned turn as in the default room\n",
    "fan": "name: every step is judged by the model\nsupervision: always\n",
    "chain": "name: a planned turn as in the default room\n",
    "stream": "name: the plain model\nplanning: false\nmemory: false\n",
}
"""Stepgate's rooms, one for each kind of work: the request's model names the work for everybody."""

SKILL = "---\nname: investigate\ndescription: Investigates one matter and reports.\n---\nReport what you know of it.\n"


@dataclass(frozen=True, slots=True)
class Running:
    """A contender that answers at `url`."""

    name: str
    url: str
    process: Process

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid


@dataclass(frozen=True, slots=True)
class Contender:
    """How one is started, on the model server's URL and a folder for what it keeps."""

    name: str
    command: Callable[[str, Path], tuple[list[str], dict[str, str]]]

    def start(self, upstream: str, folder: Path) -> Running:
        """A process of it that listens."""
        command, environment = self.command(upstream, folder)
        process = start(command, environment=environment, cold=True)
        return Running(self.name, process.line_with("listens on ").rsplit(" ", 1)[1], process)

    @contextmanager
    def running(self, upstream: str, folder: Path) -> Iterator[Running]:
        """A process of it, for the length of the block."""
        one = self.start(upstream, folder)
        try:
            yield one
        finally:
            one.process.kill()


def _gateway(module: str, upstream: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    rooms, skill = folder / "rooms", folder / "skills" / "investigate"
    for path in (rooms, skill):
        path.mkdir(parents=True, exist_ok=True)
    for name, text in ROOMS.items():
        (rooms / f"{name}.yaml").write_text(text, "utf-8")
    (skill / "SKILL.md").write_text(SKILL, "utf-8")
    settings = {
        "LLM_BASE_URL": upstream,
        "MODEL_FAST": "m",
        "DATA_DIR": str(folder / "data"),
        "ROOMS_DIR": str(rooms),
        "SKILLS_DIRS": str(skill.parent),
        "SKILLS_USER_DIR": "false",
        "PORT": "0",
        "MAX_CONCURRENT_RUNS": "1000",
    }
    return [sys.executable, "-m", module, "serve"], {f"AGENT_{key}": value for key, value in settings.items()}


def _peer(upstream: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    folder.mkdir(parents=True, exist_ok=True)
    return [str(peer.python()), "-m", "tests.bench.peer_agent", upstream, str(folder)], {}


stepgate = Contender(STEPGATE, lambda upstream, folder: _gateway("gateway.cli", upstream, folder))
undurable = Contender("undurable", lambda upstream, folder: _gateway("tests.bench.undurable", upstream, folder))
floor = Contender(FLOOR, lambda upstream, _: ([sys.executable, "-m", "tests.bench.raw_proxy", upstream], {}))
framework = Contender(PEER, _peer)


def contenders() -> list[Contender]:
    """All that can be had here."""
    return [stepgate, floor] + ([framework] if peer.missing() is None else [])


@asynccontextmanager
async def arena(script: Script, *who: Contender) -> AsyncIterator[tuple[ScriptedServer, list[Running]]]:
    """The model server with this script, and the contenders (by default all) in front of it, with fresh folders."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(ScriptedServer(script))
        running = [
            stack.enter_context(one.running(server.url, folder / one.name)) for one in (who or tuple(contenders()))
        ]
        yield server, running
