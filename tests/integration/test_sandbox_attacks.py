"""Programs that attack the sandbox. Each one returns what it achieved; that must be nothing.

They run only in namespaces, below a user without rights, with little memory and time: see `tests.support.sandboxes`.
"""

import asyncio
import os
import platform
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import agent
from agent.sandbox.client import Sandbox
from agent.sandbox.limits import ProgramResult, SandboxLimits
from tests.support.sandboxes import LIMITS, open_sandbox, requires_sandbox

pytestmark = [requires_sandbox, pytest.mark.asyncio(loop_scope="module")]

COLLECT = """
achieved = []
def attempt(name, function, *args, **options):
    try:
        value = function(*args, **options)
    except (Exception, SystemExit) as error:
        return None
    achieved.append(f"{name}: {value!r}")
    return value
"""
"""Programs call `attempt(name, function, ...)`; a call that raises nothing is an achievement."""

PREVENTED = {
    "fork": """
import os
for _ in range(20):
    attempt("fork", os.fork)
attempt("forkpty", os.forkpty)
import multiprocessing
attempt("multiprocessing", lambda: multiprocessing.Process(target=print).start())
""",
    "threads": """
import threading, _thread
from concurrent.futures import ThreadPoolExecutor
for _ in range(50):
    attempt("thread", lambda: threading.Thread(target=print).start())
attempt("_thread", _thread.start_new_thread, print, ())
attempt("pool", lambda: ThreadPoolExecutor().submit(print).result(timeout=1))
""",
    "sockets": """
import socket, urllib.request
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK, socket.AF_PACKET, 38, 40):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        attempt(f"socket {family} {kind}", socket.socket, family, kind)
attempt("pair", socket.socketpair)
attempt("connect", socket.create_connection, ("127.0.0.1", 80), 1)
attempt("resolve", socket.getaddrinfo, "localhost", 80)
attempt("http", urllib.request.urlopen, "http://127.0.0.1/", None, 1)
""",
    "proc and sys": """
import os
for path in ("/proc", "/proc/self", "/sys", "/dev", "/etc", "/root", "/home", "/tmp", "/", "/run", "/var"):
    attempt(path, os.listdir, path)
for path in ("/proc/self/environ", "/proc/1/environ", "/proc/self/mem", "/proc/self/maps", "/proc/self/cwd/etc/passwd",
             "/etc/passwd", "/etc/shadow", "/etc/hostname", "/dev/mem", "/dev/kmsg", "/dev/shm/x"):
    attempt(path, lambda: open(path, "rb").read(10))
""",
    "running other programs": """
import os, subprocess, ctypes
attempt("run", subprocess.run, ["/bin/sh", "-c", "id"])
attempt("execv", os.execv, "/bin/sh", ["sh"])
attempt("spawn", os.posix_spawn, "/bin/sh", ["sh"], {})
attempt("popen", lambda: os.popen("id").read())
if os.system("id") == 0:
    achieved.append("system")
libc = ctypes.CDLL(None)
if libc.system(b"id") == 0:
    achieved.append("libc system")
if libc.execl(b"/bin/sh", b"sh", None) != -1:
    achieved.append("execl")
""",
    "import tricks": """
import importlib, sys
attempt("__import__", __import__("subprocess").check_output, ["/usr/bin/id"])
attempt("reload", lambda: importlib.reload(__import__("os")).fork())
attempt("posix", lambda: __import__("posix").fork())
attempt("subclasses", lambda: [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == "Popen"][0](["/bin/id"]))
for name in ("pydantic", "sqlalchemy", "gateway", "mcp_tools", "agent.core.settings", "dotenv"):
    attempt(name, importlib.import_module, name)
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "PackageFinder"]
for name in ("pydantic", "sqlalchemy", "gateway"):
    attempt(f"{name} without the finder", importlib.import_module, name)
attempt("_posixsubprocess", lambda: __import__("_posixsubprocess").fork_exec())
""",
    "signals to others": """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
for pid in (os.getppid(), 1, 2, -1, 0, 4194303):
    for number in (0, signal.SIGTERM, signal.SIGKILL):
        attempt(f"kill {pid} {number}", os.kill, pid, number)
        if libc.kill(pid, number) == 0:
            achieved.append(f"libc kill {pid} {number}")
attempt("killpg", os.killpg, os.getpgid(0), signal.SIGTERM)
attempt("pidfd", os.pidfd_open, 1)
""",
    "more rights": """
import ctypes, os, resource
for name in ("setuid", "setgid", "seteuid", "setegid"):
    attempt(name, getattr(os, name), 0)
attempt("setgroups", os.setgroups, [0])
attempt("setresuid", os.setresuid, 0, 0, 0)
attempt("chroot", os.chroot, ".")
attempt("nice", os.nice, -5)
for kind in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
    attempt(f"setrlimit {kind}", resource.setrlimit, kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    attempt(f"lower setrlimit {kind}", resource.setrlimit, kind, (1, 1))
libc = ctypes.CDLL(None, use_errno=True)
for name, arguments in {"unshare": (0x10000000,), "setns": (0, 0), "ptrace": (0, 0, 0, 0), "prctl": (22, 0, 0, 0, 0),
                        "personality": (0,), "umount2": (b"/", 2), "mount": (b"tmpfs", b"/", b"tmpfs", 0, None),
                        "memfd_create": (b"x", 0), "swapoff": (b"/",), "sethostname": (b"x", 1), "chmod": (b".", 0o7777),
                        "iopl": (3,), "clone": (0,), "vfork": ()}.items():
    if name != "clone" and getattr(libc, name, lambda *a: -1)(*arguments) >= 0:
        achieved.append(name)
if os.getuid() == 0 or os.geteuid() == 0 or os.getgid() == 0:
    achieved.append("is root")
""",
    "writing outside": """
import os, shutil, tempfile
for path in ("/tmp/x", "/program/x", "/x", "../x", "files/x", "/program/files/x", "/etc/x", "/dev/shm/x",
             os.path.dirname(os.__file__) + "/x.py", "files/given.txt"):
    attempt(path, lambda: open(path, "w").write("x"))
    attempt(f"append {path}", lambda: open(path, "a").write("x"))
for path in ("/tmp/d", "/program/d", "files/d", "/d"):
    attempt(path, os.mkdir, path)
attempt("remove", os.remove, "files/given.txt")
attempt("remove os", os.remove, os.__file__)
attempt("truncate", os.truncate, "files/given.txt", 0)
attempt("rename", os.rename, "files/given.txt", "given.txt")
attempt("rmtree", shutil.rmtree, "/program/files")
attempt("tempfile", tempfile.mkstemp, "x", "y", "/tmp")
""",
    "links and devices": """
import os, stat
attempt("symlink", os.symlink, "/etc/passwd", "x")
attempt("link", os.link, "files/given.txt", "x")
attempt("fifo", os.mkfifo, "pipe")
attempt("device", os.mknod, "device", stat.S_IFCHR | 0o666, os.makedev(1, 1))
attempt("chmod", os.chmod, ".", 0o7777)
attempt("chown", os.chown, ".", 0, 0)
""",
    "inherited descriptors": """
import os
for number in range(4, 1024):
    attempt(f"descriptor {number}", os.fstat, number)
for number in (0, 1, 2, 3):
    import stat
    if not stat.S_ISFIFO(os.fstat(number).st_mode):
        achieved.append(f"{number} is no pipe")
""",
    "environment": """
import os, ctypes, sys
allowed = {"HOME", "LANG", "MPLBACKEND", "MPLCONFIGDIR", "OPENBLAS_NUM_THREADS", "TZ", "LC_CTYPE"}
achieved += sorted(set(os.environ) - allowed)
achieved += [name for name in [os.uname().nodename] if name != "sandbox"]
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
achieved += [name for name in (b"STEPGATE_TEST_CANARY", b"PATH", b"AGENT_LLM_API_KEY") if getenv(name)]
import gc
achieved += [repr(thing) for thing in gc.get_objects() if type(thing) is str and "canary-value" in thing]
""",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    os.environ["STEPGATE_TEST_CANARY"] = "canary-value"
    try:
        async with open_sandbox() as sandbox:
            yield sandbox
    finally:
        del os.environ["STEPGATE_TEST_CANARY"]


async def run(sandbox: Sandbox, code: str, tmp_path: Path | None = None) -> ProgramResult:
    """Runs a program, then an honest one, which must work as before."""
    files = {}
    if tmp_path is not None:
        (tmp_path / "given.txt").write_text("given")
        files = {"given.txt": os.open(tmp_path / "given.txt", os.O_RDONLY)}
    try:
        result = await sandbox.run(code, {}, files)
    finally:
        for descriptor in files.values():
            os.close(descriptor)
    assert (await sandbox.run("import os; [6 * 7, os.listdir('.')]", {}, {})).value == [42, ["files"]]
    return result


@pytest.mark.parametrize("attack", list(PREVENTED))
async def test_an_attack_achieves_nothing(sandbox: Sandbox, attack: str, tmp_path: Path) -> None:
    result = await run(sandbox, f"{COLLECT}{PREVENTED[attack]}\nachieved", tmp_path)
    assert (result.value, result.error) == ([], None)
    assert (tmp_path / "given.txt").read_text() == "given"


async def test_the_attempts_would_be_noticed(sandbox: Sandbox) -> None:
    """The control of the tests above: what is permitted counts as achieved."""
    result = await run(sandbox, f'{COLLECT}\nattempt("write", lambda: open("x", "w").write("x"))\nachieved')
    assert result.value == ["write: 1"]


async def test_a_file_of_the_host_cannot_be_read(sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    secret.chmod(0o644)
    paths = [str(secret), __file__, agent.__file__]
    code = f"{COLLECT}\nfor path in {paths!r}:\n    attempt(path, lambda: open(path).read())\nachieved"
    assert (await run(sandbox, code)).value == []


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of the calls are those of x86_64")
async def test_dangerous_system_calls_are_refused(sandbox: Sandbox) -> None:
    numbers = [
        41, 42, 46, 47, 53, 56, 57, 58, 59, 62, 101, 105, 126, 135, 155, 157, 161, 165, 166, 169, 175, 200, 206, 222, 234,
        237, 246, 248, 250, 253, 256, 272, 278, 279, 298, 300, 304, 308, 310, 311, 313, 317, 319, 320, 321, 322, 323, 329,
        424, 425, 426, 427, 428, 429, 430, 431, 434, 435, 437, 438, 440, 442, 444, 445, 446, 447, 454, 462,
    ]  # fmt: skip
    code = f"""
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
{{number: errno.errorcode[ctypes.get_errno()] for number in {numbers!r} if libc.syscall(number, 0, 0, 0, 0, 0, 0) == -1}}
"""
    result = await run(sandbox, code)
    assert result.value == {str(number): "ENOSYS" if number == 435 else "EPERM" for number in numbers}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86_64 has two further numberings of system calls")
@pytest.mark.parametrize(
    "code",
    [
        "import ctypes; ctypes.CDLL(None).syscall(0x40000000 + 39); 'alive'",
        # mov eax, 20; int 0x80; ret: getpid by the numbers of 32 bits
        "import ctypes, mmap\n"
        "memory = mmap.mmap(-1, 4096, prot=7)\n"
        "memory.write(b'\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3')\n"
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()\n'alive'",
    ],
)
async def test_other_numberings_of_system_calls_end_the_program(sandbox: Sandbox, code: str) -> None:
    result = await run(sandbox, code)
    assert (result.value, result.problem) == (None, "died")
    assert str(-signal.SIGSYS) in str(result.error)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("while True: pass", "time"),
        ("import time; time.sleep(60)", "time"),
        ("import re; re.match(r'(a+)+$', 'a' * 40 + 'b')", "time"),
        ("import os\nos.close(1); os.close(2); os.close(3)\nwhile True: pass", "time"),
        ("import signal\nfor n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n  except (OSError, ValueError): pass\n"
         "while True: pass", "time"),
        ("while True:\n  try:\n    while True: pass\n  except BaseException: pass", "time"),
        ("while True: print('x' * 1000)", "output"),
        ("import os\nwhile True: os.write(2, b'x' * 1000)", "output"),
        ("import os\nwhile True: os.write(3, b'x' * 1000)", "output"),
        ("'x' * 5_000_000", "output"),
        ("x = bytearray(2**33)", "memory"),
        ("x = []\nwhile True: x.append(bytearray(2**20))", "memory"),
        ("x = 'x'\nwhile True: x += x", "memory"),
        ("import os; os._exit(0)", "died"),
        ("import os; os._exit(7)", "died"),
        ("import os; os.abort()", "died"),
        ("import ctypes; ctypes.string_at(0)", "died"),
        ("import os; os.write(3, b'[' * 100_000); os._exit(0)", "died"),
        ("import os; os.write(3, b'\\xff\\x00'); os._exit(0)", "died"),
        ("import os; os.write(3, b'[1]'); os._exit(0)", "died"),
        ("import sys\nsys.setrecursionlimit(10**9)\ndef f(): return f()\nf()", None),
        ("x = []; x.append(x); x", "program"),
        ("import itertools; itertools.count()", "program"),
        ("class E(Exception):\n  def __str__(self): raise E\nraise E", "program"),
        ("import sys; sys.exit('no')", "program"),
        ("raise KeyboardInterrupt", "program"),
        ("int('9' * 10_000)", "program"),
        ("x = (", "program"),
        ("\x00", "program"),
    ],
)  # fmt: skip
async def test_a_program_that_goes_wrong_ends(code: str, problem: str | None) -> None:
    seconds = {"time": 1, None: 4}.get(problem, 20)  # on a busy machine it takes longer to fill the memory
    limits = SandboxLimits(seconds=seconds, memory_bytes=LIMITS.memory_bytes, folder_bytes=LIMITS.folder_bytes)
    async with open_sandbox(limits) as sandbox:
        result = await run(sandbox, code)
    assert result.value is None
    assert result.error
    if problem is not None:
        assert result.problem == problem
    assert len(result.printed) <= limits.printed_bytes


async def test_ten_thousand_files_are_refused(sandbox: Sandbox) -> None:
    code = """
made = 0
try:
    for number in range(10_000):
        with open(f"file-{number}", "w") as file:
            file.write("x")
        made += 1
except OSError as error:
    reason = error.strerror
[made, reason]
"""
    result = await run(sandbox, code)
    assert isinstance(result.value, list)
    made, reason = result.value
    assert int(str(made)) < 1_000
    assert reason == "No space left on device"
    assert len(result.artifacts) == sandbox.limits.artifacts
    assert result.omitted_artifacts > 100


async def test_the_folder_cannot_be_filled_beyond_its_size(sandbox: Sandbox) -> None:
    code = """
written = 0
try:
    for number in range(60):
        with open(f"file-{number}", "wb", buffering=0) as file:
            for _ in range(10):
                written += file.write(bytes(2**20))
except OSError:
    pass
written
"""
    result = await run(sandbox, code)
    assert 0 < int(str(result.value)) <= sandbox.limits.folder_bytes
    assert sum(len(artifact.content) for artifact in result.artifacts) <= sandbox.limits.artifact_bytes


async def test_deep_folders_and_odd_names_do_no_harm(sandbox: Sandbox) -> None:
    code = """
import os
for name in ("ok.txt", "\\n.txt", "\\u202e.txt", "x" * 200, b"\\xff".decode("utf-8", "surrogateescape"), "-rf"):
    open(name, "w").write("x")
for _ in range(100):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
open("end.txt", "w").write("x")
os.umask(0o777)
open("/program/folder/unreadable.txt", "w")
"""
    result = await run(sandbox, code)
    assert result.error is None
    assert [artifact.name for artifact in result.artifacts] == ["-rf", "ok.txt", "unreadable.txt"]


async def test_nothing_of_a_program_reaches_the_next_one(sandbox: Sandbox) -> None:
    spoil = """
import json, builtins, sys, os
builtins.print = json.dumps = sys.exit = os.listdir = lambda *a, **k: "spoiled"
sys.modules["math"] = None
for name in [name for name in sys.modules if name.startswith("agent")]:
    vars(sys.modules[name]).clear()
open("left.txt", "w").write("x")
"""
    await run(sandbox, spoil)
    after = await run(sandbox, "import math, json, os; print('fine'); [math.pi > 3, json.dumps([1]), os.listdir('.')]")
    assert (after.value, after.printed) == ([True, "[1]", ["files"]], "fine\n")


async def test_programs_at_the_same_time_do_not_see_each_other(sandbox: Sandbox) -> None:
    code = "import os, time\nopen(str(inputs['n']), 'w')\ntime.sleep(0.3)\n[os.getpid(), sorted(os.listdir('.'))]"
    results = await asyncio.gather(*(sandbox.run(code, {"n": number}, {}) for number in range(4)))
    assert [result.value for result in results] == [[1, sorted([str(number), "files"])] for number in range(4)]


async def test_a_cancelled_call_ends_its_program() -> None:
    async with open_sandbox() as sandbox:
        zygote = (await sandbox.start()).process.pid
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await sandbox.run("while True: pass", {}, {})
        children = Path(f"/proc/{zygote}/task/{zygote}/children")
        async with asyncio.timeout(5):
            while children.read_text():  # noqa: ASYNC110 - the kernel has no event for this
                await asyncio.sleep(0.05)


async def test_a_killed_zygote_is_replaced() -> None:
    async with open_sandbox() as sandbox:
        process = (await sandbox.start()).process
        process.kill()
        await process.wait()
        assert (await sandbox.run("1 + 1", {}, {})).value == 2
