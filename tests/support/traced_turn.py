"""Counts the code that one chat completion with one tool call runs through: files, packages, functions.

`python -m tests.support.traced_turn` prints the figures, `--files` the files too. The model is scripted, everything
else is real: what counts is which code of ours a request needs, so what an engineer has to learn first. Loops that were
running before and look at something now and then (a folder, a queue) are not part of a request: code counts if it runs
in the context of the request's connection, which the tasks of the run inherit, or on the database's thread.
"""

import asyncio
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

import httpx

from agent.core.settings import Settings
from agent.storage.sqlite import SqliteDatabase
from gateway.access.http_protocol import BoundedConnection
from tests.support.processes import ROOT
from tests.support.script import plans, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.serving import serving

PACKAGES = ("agent", "mcp_tools", "gateway")
PROMPT = "What is 2*21?"
MODEL = script(
    plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
    says("It is 42.", to="completion"),
)

_COUNTS: ContextVar[bool] = ContextVar("counts", default=False)
_ENTRIES = frozenset({BoundedConnection.data_received.__code__, SqliteDatabase._serve.__code__})
"""Where bytes of a client arrive, and what the database's thread runs."""


@dataclass(frozen=True)
class TracedTurn:
    """The code that ran, as paths below the repository's root, and how many functions."""

    files: tuple[str, ...]
    functions: int

    @property
    def packages(self) -> tuple[str, ...]:
        """The folders that hold the files."""
        return tuple(sorted({file.rpartition("/")[0] for file in self.files}))

    @property
    def features(self) -> tuple[str, ...]:
        """The files of features."""
        return tuple(file for file in self.files if file.startswith("gateway/features/"))


async def trace_turn(folder: Path, model: ScriptedServer, features: str = "") -> TracedTurn:
    """Serves a gateway in `folder`, sends the request twice, and traces the second one: the first one imports."""
    model.load(MODEL)
    settings = Settings(
        _env_file=None, data_dir=folder, port=0, skills_dirs=(), drain_seconds=1,
        llm_base_url=model.url, model_fast="small", model_high="large", model_profile="capable", features=features,
    )  # fmt: skip
    with _collect_codes() as codes:
        async with serving(settings) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
            await _ask(client)
            model.load(MODEL)
            codes.clear()
            await _ask(client)
            turn = frozenset(codes)
    ours = {code for code in turn if code.co_name != "<module>" and _get_path(code)}
    return TracedTurn(tuple(sorted({_get_path(code) for code in ours})), len(ours))


async def _ask(client: httpx.AsyncClient) -> None:
    body = {"model": "stepgate", "messages": [{"role": "user", "content": PROMPT}]}
    response = await client.post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]["content"] == "It is 42."


def _get_path(code: CodeType) -> str:
    """The path of our own code below the root, else ""."""
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT):
        return ""
    inside = path.relative_to(ROOT)
    return inside.as_posix() if inside.parts[0] in PACKAGES else ""


@contextmanager
def _collect_codes() -> Iterator[set[CodeType]]:
    """Collects the code objects that are entered for a connection, in this thread and in those that start
    meanwhile."""
    codes: set[CodeType] = set()

    def collect(frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        if frame.f_code in _ENTRIES:
            _COUNTS.set(True)
        if _COUNTS.get():
            codes.add(frame.f_code)

    threading.setprofile(collect)
    sys.setprofile(collect)
    try:
        yield codes
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def main() -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(MODEL) as model:
        features = next((word for word in sys.argv[1:] if not word.startswith("--")), "")
        turn = asyncio.run(trace_turn(Path(folder), model, features))
    print(f"{len(turn.files)} files, {len(turn.packages)} packages, {turn.functions} functions")
    print(f"{len(turn.features)} files of features")
    if "--files" in sys.argv[1:]:
        print(*turn.files, sep="\n")


if __name__ == "__main__":
    main()
