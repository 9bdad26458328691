"""The supervisor of `stepgate serve --workers`: no process can be made, and a signal while workers start."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.settings import Settings
from gateway.features.fleet.serve_workers.worker_supervisor import WorkerSupervisor


def count_open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[WorkerSupervisor]:
    sockets = [socket.socket(), socket.socket()]
    made = WorkerSupervisor(Settings(_env_file=None), sockets, [], tmp_path)
    yield made
    for one in sockets:
        one.close()
    os.close(made._alive_reader)
    os.close(made._alive_writer)


async def test_a_worker_for_which_no_process_can_be_made_is_tried_again_later(
    supervisor: WorkerSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
    before = count_open_files()
    assert await supervisor._start(1) == 1
    assert count_open_files() == before


async def test_no_worker_is_started_once_the_signal_has_come(
    supervisor: WorkerSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start(_: int) -> int | None:
        raise AssertionError("it was started")

    monkeypatch.setattr(supervisor, "_start", start)
    supervisor._stop()
    await asyncio.wait_for(supervisor._keep(1), 5)
