"""A gateway as one of several processes behind one port (`stepgate serve --workers`).

The parent (`worker_supervisor.py`) hands it over in the environment, and sockets as file descriptors.
"""

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

ENVIRONMENT = "STEPGATE_WORKER"
METRICS_ENVIRONMENT = "PROMETHEUS_MULTIPROC_DIR"
"""`prometheus_client` reads it when it is imported, and then keeps the values of a process in a file there."""


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """One worker of a gateway."""

    index: int
    """Counts from 0. A worker that replaces one that died has the same index."""
    listening: int
    """File descriptor of the socket that clients connect to."""
    forwarding: tuple[int, ...]
    """File descriptors of the loopback sockets, one for each worker by index, on which a worker receives requests that
    belong to it but reached another."""
    ready: int
    """File descriptor of a pipe; one byte is written once the worker serves."""
    parent: int
    """File descriptor of a pipe that ends when the parent does."""

    @classmethod
    def from_environment(cls) -> Self | None:
        """This process's place, or None for a gateway that is one process."""
        text = os.environ.get(ENVIRONMENT)
        if text is None:
            return None
        fields = json.loads(text)
        return cls(**{**fields, "forwarding": tuple(fields["forwarding"])})

    def to_environment(self, folder: Path) -> dict[str, str]:
        """The variables that give the child its place; `folder` holds the files of the metrics."""
        return {ENVIRONMENT: json.dumps(asdict(self)), METRICS_ENVIRONMENT: str(folder)}

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The resources that the child inherits."""
        return (self.listening, *self.forwarding, self.ready, self.parent)

    def open_sockets(self) -> tuple[socket.socket, socket.socket]:
        """The socket for clients and the socket for the other workers."""
        return socket.socket(fileno=self.listening), socket.socket(fileno=self.forwarding[self.index])

    def find_port(self, index: int) -> int:
        """The loopback port of a worker."""
        with socket.socket(fileno=os.dup(self.forwarding[index])) as other:
            return int(other.getsockname()[1])

    def tell_ready(self) -> None:
        """Notifies the parent that this worker serves."""
        os.write(self.ready, b"1")
        os.close(self.ready)
