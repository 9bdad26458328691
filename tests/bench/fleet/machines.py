"""Network namespaces that stand for machines: each has an address of its own on a bridge of this machine."""

import os
import shutil
import subprocess
from typing import Self

BLOCK = "198.18"
"""Addresses for benchmarks of networks (RFC 2544); they lead nowhere else."""


class Machines:
    """Namespaces as a context manager. `absent` says why there are none; then every process is one of this machine."""

    def __init__(self, count: int) -> None:
        self._names = [f"sg{os.getpid()}n{number}" for number in range(count)]
        self._bridge = f"sg{os.getpid()}"
        self._subnet = f"{BLOCK}.{os.getpid() % 256}"
        self.absent = "" if count else "no network namespaces: none needed"
        if os.getuid() != 0:
            self.absent = "no network namespaces: not root"
        elif shutil.which("ip") is None:
            self.absent = "no network namespaces: no program `ip`"

    @property
    def network(self) -> str:
        """The address of this machine on the bridge with the length of its prefix; empty without namespaces."""
        return "" if self.absent else f"{self._subnet}.1/24"

    @property
    def address(self) -> str:
        """The address at which the machines find the servers of this one."""
        return "127.0.0.1" if self.absent else f"{self._subnet}.1"

    def prefix(self, number: int) -> tuple[str, ...]:
        """What stands before a command that runs on machine `number`."""
        return () if self.absent else ("ip", "netns", "exec", self._names[number])

    def __enter__(self) -> Self:
        if not self.absent:
            try:
                self._create()
            except subprocess.CalledProcessError as error:
                self._delete()
                self.absent = f"no network namespaces: {error.stderr.strip()}"
        return self

    def __exit__(self, *_: object) -> None:
        if not self.absent:
            self._delete()

    def _create(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("address", "add", self.network, "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for number, name in enumerate(self._names):
            cable = f"{self._bridge}v{number}"
            _ip("netns", "add", name)
            _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", cable, "master", self._bridge, "up")
            _ip("-n", name, "address", "add", f"{self._subnet}.{number + 2}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")

    def _delete(self) -> None:
        for name in self._names:
            _ip("netns", "delete", name, check=False)
        _ip("link", "delete", self._bridge, check=False)


def _ip(*arguments: str, check: bool = True) -> None:
    subprocess.run(["ip", *arguments], check=check, capture_output=True, text=True)
