"""What is said to the process that forks (`warm_server.py`), and a program that stands for what was forked.

`python -I -S warm_client.py SOCKET MODULE ARGUMENTS` starts in 20 ms, for it imports next to nothing: it hands its
standard files, folder and environment over, waits, and ends as the forked process has ended.
"""

import array
import os
import signal
import socket
import sys

_PROGRAM = os.path.abspath(__file__)  # noqa: PTH100 - pathlib would take as long to load as the rest of the program
_SIZE = 4
_TOLD = 8


def command(address: str) -> list[str]:
    """The beginning of a command line that stands for what is forked; module and arguments follow."""
    return [sys.executable, "-I", "-S", _PROGRAM, address]


def packed(module: str, arguments: list[str], environment: dict[str, str], cwd: str) -> bytes:
    """A request: texts with NUL between them, for none of them can hold one."""
    pairs = [f"{key}={value}" for key, value in environment.items()]
    return "\0".join([module, cwd, str(len(arguments)), *arguments, *pairs]).encode(errors="surrogateescape")


def unpacked(request: bytes) -> tuple[str, list[str], dict[str, str], str]:
    """Module, arguments, environment and folder of a request."""
    module, cwd, count, *rest = request.decode(errors="surrogateescape").split("\0")
    environment = dict(pair.split("=", 1) for pair in rest[int(count) :])
    return module, rest[: int(count)], environment, cwd


def connect(address: str) -> socket.socket:
    """A connection to the process that forks; closing it kills what was forked for it."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    return connection


def send(connection: socket.socket, request: bytes, files: list[int]) -> None:
    """A request, and the standard files (input, output, error) of the new process."""
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
    connection.sendmsg([len(request).to_bytes(_SIZE, "big")], ancillary)
    connection.sendall(request)


def receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    """What `send` sent. `EOFError` when who sends has gone before its end."""
    head, files, _, _ = socket.recv_fds(connection, _SIZE, 3)
    if not head:
        raise EOFError
    size, request = int.from_bytes(head, "big"), b""
    while len(request) < size:
        part = connection.recv(size - len(request))
        if not part:
            raise EOFError
        request += part
    return request, files


def tell(connection: socket.socket, number: int) -> None:
    """The process id of what was forked; later, its exit code. Nothing where who asked has gone."""
    try:
        connection.sendall(str(number).ljust(_TOLD).encode())
    except (BrokenPipeError, ConnectionResetError):
        return


def read_exit_code(connection: socket.socket) -> int:
    """What `tell` told. `EOFError` when the process that forks has ended."""
    number = connection.recv(_TOLD)
    if not number:
        raise EOFError("the process that forks has ended")
    return int(number)


def main() -> None:
    """Have it forked, wait for its end, and end the same way."""
    _, address, module, *arguments = sys.argv
    connection = connect(address)
    cwd = os.getcwd()  # noqa: PTH109 - as above
    send(connection, packed(module, arguments, dict(os.environ), cwd), [0, 1, 2])
    pid = read_exit_code(connection)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    for file in (0, 1):  # else nobody sees the forked process close them
        os.close(file)
    code = read_exit_code(connection)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
