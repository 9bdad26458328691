"""Row 15: the machine instructions of a turn, counted under valgrind. Other work on the machine hardly moves them, so
that changes of a few percent are seen where seconds of CPU are too coarse."""

import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bench.contenders import STEPGATE, Command, Contender, Running, contenders, list_references
from tests.bench.load import closed_loop
from tests.bench.measure import Figures
from tests.bench.report import NotMeasuredError, Row
from tests.bench.work import request, turn
from tests.support.scripted_server import ScriptedServer

CLIENTS = 5
WARM, TURNS = 30, 40
MILLION = 1_000_000
AIM = 20.0
"""In millions: a little more than a turn takes (19.5 to 19.7 on a busy machine, where loops of the gateway run more
often in a turn), so that one which becomes heavier is noticed."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A contender that runs under callgrind."""

    running: Running
    folder: Path

    async def count_turn(self) -> float:
        """Millions of instructions a turn, in user space, all threads; the mean of `TURNS`."""
        await self._ask(WARM)
        self._control("--instr=on")
        await self._ask(TURNS)
        self._control("--dump")
        self._control("--instr=off")
        dumps = list(self.folder.glob("callgrind.out.*"))
        total = sum(map(_read_total, dumps))
        for dump in dumps:
            dump.unlink()
        return total / TURNS / MILLION

    async def _ask(self, count: int) -> None:
        await closed_loop(self.running.url, body=request("turn"), clients=CLIENTS, count=count)

    def _control(self, order: str) -> None:
        subprocess.run(["callgrind_control", order, str(self.running.pid)], check=True, capture_output=True)


async def row() -> Row:
    """Millions of instructions of the planned turn of row 1. The kernel's work is not among them: row 1 compares."""
    if shutil.which("callgrind_control") is None:
        raise NotMeasuredError("valgrind is not installed")
    found: Figures = {}
    for one in contenders("turn"):
        async with count_instructions(one) as counted:
            found[one.name] = await counted.count_turn()
    references = list_references("turn", found)
    return Row("15 instructions a turn (2 model calls, 1 tool)", "M", found[STEPGATE], AIM, references)


@asynccontextmanager
async def count_instructions(one: Contender) -> AsyncIterator[Counted]:
    """The contender under callgrind, which counts nothing yet, in front of a model that answers at once."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(ScriptedServer(turn()))
        slowed = replace(one, command=lambda upstream, kept: _wrap(one.command(upstream, kept), folder))
        running = stack.enter_context(slowed.running(server.url, folder / one.name))
        yield Counted(running, folder)


def _wrap(command: Command, folder: Path) -> Command:
    """The command under callgrind; its hashes do not differ between starts, so that the counts do not either."""
    environment: Mapping[str, str] = {**command.environment, "PYTHONHASHSEED": "0"}
    arguments = [
        "valgrind",
        "--tool=callgrind",
        "--instr-atstart=no",
        f"--callgrind-out-file={folder}/callgrind.out.%p",
        *command.arguments,
    ]
    return command._replace(arguments=arguments, environment=environment)


def _read_total(dump: Path) -> int:
    """The instructions that one dump counts."""
    totals = [line for line in dump.read_text("utf-8", "replace").splitlines() if line.startswith("totals:")]
    return sum(int(line.split()[1]) for line in totals)
