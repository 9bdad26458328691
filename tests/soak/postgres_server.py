"""A PostgreSQL server of a test's own, which may be stopped and started: the machine's binaries on a free port."""

import os
import pwd
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

import psycopg


def find_binaries() -> Path | None:
    """The folder of `initdb` and `pg_ctl`, or None: Debian keeps them off the path."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


class PostgresServer:
    """A server as a context manager; `url` is its database. `network`, such as 198.18.0.1/24, is an address of this
    machine on which it listens too, and from whose network it trusts everybody.
    """

    def __init__(self, folder: Path, network: str = "") -> None:
        binaries = find_binaries()
        assert binaries is not None, "no PostgreSQL server is installed (apt-get install postgresql)"
        self._binaries = binaries
        self._folder = folder
        self._network = network
        # A server refuses to run as root.
        self._user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> Self:
        self._folder.mkdir(mode=0o700)
        if self._user:
            account = pwd.getpwnam("postgres")
            os.chown(self._folder, account.pw_uid, account.pw_gid)
            for parent in self._folder.parents[:-1]:
                if parent != Path("/tmp"):
                    parent.chmod(parent.stat().st_mode | 0o011)  # the server's account must reach its folder
        self._call("initdb", "--auth=trust", "--username=postgres", "--no-sync")
        if self._network:
            with (self._folder / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {self._network} trust\n")
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._call("pg_ctl", "--mode=immediate", "stop")

    def restart(self, seconds: float) -> None:
        """Stops the server at once, cutting every connection, and starts it again after `seconds`."""
        self._call("pg_ctl", "--mode=fast", "--wait", "stop")
        time.sleep(seconds)
        self._start()

    def ensure_running(self) -> None:
        """Starts the server again if it has ended, as a supervisor would."""
        if self._ask("pg_ctl", "status") != 0:
            self._start()

    @property
    def pid(self) -> int:
        """The process id of the server, the parent of its connections' processes."""
        return int((self._folder / "postmaster.pid").read_text().split()[0])

    @property
    def log(self) -> Path:
        """The file of its log."""
        return self._folder / "log"

    def create_database(self, name: str) -> str:
        """Creates an empty database. Returns its URL."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return f"{self.url.rpartition('/')[0]}/{name}"

    def _start(self) -> None:
        addresses = ",".join(["127.0.0.1", *([self._network.partition("/")[0]] if self._network else [])])
        options = (
            f"-p {self._port} -c listen_addresses={addresses} -c unix_socket_directories='' -c max_connections=300"
        )
        self._call("pg_ctl", "--wait", f"--log={self.log}", f"--options={options}", "start")

    def _call(self, program: str, *arguments: str) -> None:
        status = self._ask(program, *arguments)
        assert status == 0, f"{program} ended with {status}; see {self.log}"

    def _ask(self, program: str, *arguments: str) -> int:
        command = [*self._user, str(self._binaries / program), f"--pgdata={self._folder}", *arguments]
        return subprocess.run(
            command, check=False, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, cwd="/"
        ).returncode
