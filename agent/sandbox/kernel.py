"""Kernel interfaces of the sandbox: Landlock, seccomp, namespaces, capabilities, limits.

By ctypes, because the standard library has no functions for them. Runs in
the sandbox's processes and, for the probe, in the gateway.
"""

import ctypes
import os
import platform
import resource
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from agent.sandbox.syscalls import MACHINES, build_filter

NOBODY = 65534
"""The user and group of programs if the gateway runs as root."""
HOST_NAME = b"sandbox"
"""The name of the machine that programs see."""

# prctl(2), linux/prctl.h.
_PR_SET_PDEATHSIG, _PR_GET_SECCOMP, _PR_SET_DUMPABLE, _PR_SET_SECCOMP = 1, 21, 4, 22
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_SECCOMP_MODE_FILTER = 2
_LAST_CAPABILITY = 63
_CAPABILITY_VERSION_3 = 0x20080522

# landlock_create_ruleset(2) and its family have the same numbers on every machine.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
# Access rights, linux/landlock.h.
READ_FILE, READ_DIR = 1 << 2, 1 << 3
_WRITE_FILE, _REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG, _REFER, _TRUNCATE = (
    1 << 1, 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 13, 1 << 14,
)  # fmt: skip
READ = READ_FILE | READ_DIR
WRITE = READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE
"""Rights in a folder for results: no links, no devices, no sockets, no execution."""
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""The number of rights on files by version of the interface; later versions have as many as 5."""
_ALL_NETWORK = 0b11
_ALL_SCOPES = 0b11

# unshare(2), linux/sched.h.
NEW_MOUNTS, NEW_UTS, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NETWORK = (
    0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
# mount(2), linux/mount.h.
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_EXEC, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18,
)  # fmt: skip
_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


class _RulesetAttributes(ctypes.Structure):
    """`struct landlock_ruleset_attr`, landlock_create_ruleset(2). Older kernels take only its beginning."""

    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathRule(ctypes.Structure):
    """`struct landlock_path_beneath_attr`, landlock_add_rule(2). Packed."""

    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _FilterProgram(ctypes.Structure):
    """`struct sock_fprog`, seccomp(2): the number of instructions, and their address."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


class _CapabilityHeader(ctypes.Structure):
    """`struct __user_cap_header_struct`, capset(2)."""

    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def get_landlock_version() -> int:
    """The version of the kernel's Landlock interface; 0 without Landlock."""
    if _libc is None:
        return 0
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _RULESET_VERSION)))


def has_seccomp() -> bool:
    """Whether the kernel filters system calls, on a machine whose calls are known."""
    return _libc is not None and platform.machine() in MACHINES and _libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0


def unshare(flags: int) -> None:
    """Moves this process into new namespaces, unshare(2). Raises OSError."""
    assert _libc is not None
    _check(_libc.unshare(flags), "unshare")


def leave_host_name() -> None:
    """Gives this UTS namespace a name of its own, so that programs do not learn the machine's; uts_namespaces(7)."""
    assert _libc is not None
    _check(_libc.sethostname(HOST_NAME, len(HOST_NAME)), "sethostname")


def enter_user_namespace() -> None:
    """Gives an ordinary user the rights for further namespaces, in a user namespace of its own; user_namespaces(7).
    Raises OSError where the kernel or its administrator forbids that.
    """
    user, group = os.getuid(), os.getgid()
    unshare(NEW_USER)
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def mount_memory(path: str, size: int, files: int) -> None:
    """Mounts an empty folder in memory: at most `size` bytes and `files` files. Raises OSError."""
    _mount("tmpfs", path, "tmpfs", _NO_SETUID | _NO_DEVICES | _NO_EXEC, f"size={size},nr_inodes={files},mode=0755")


def make_read_only(path: str) -> None:
    """Makes a mounted folder read-only. Raises OSError."""
    _mount(None, path, None, _REMOUNT | _BIND | _READ_ONLY | _NO_SETUID | _NO_DEVICES, None)


def replace_root(new_root: str, shown: Iterable[str], folders: Iterable[str]) -> None:
    """Makes `new_root` the root of this process's mount namespace: an empty file system in memory.

    Only the paths of `shown` exist in it, read-only and at the same place, and empty `folders`. Raises OSError.
    """
    _mount(None, "/", None, _RECURSIVE | _PRIVATE, None)
    _mount("tmpfs", new_root, "tmpfs", _NO_SETUID | _NO_DEVICES, "size=1m,nr_inodes=4096,mode=0755")
    for path in shown:
        target = f"{new_root}{path}"
        Path(target).mkdir(parents=True, exist_ok=True)
        _mount(path, target, None, _BIND, None)
        make_read_only(target)
    for folder in folders:
        Path(f"{new_root}{folder}").mkdir(parents=True, exist_ok=True)
    os.chdir(new_root)
    assert _libc is not None
    # pivot_root(2) with the same folder twice puts the old root on top of the new one, from where it is detached.
    _check(_libc.syscall(_PIVOT_ROOT[platform.machine()], b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _DETACH), "umount2")
    os.chdir("/")
    _mount(None, "/", None, _REMOUNT | _BIND | _READ_ONLY | _NO_SETUID | _NO_DEVICES, None)


def die_with_parent(signal_number: int) -> None:
    """Sends this process a signal when its parent ends. A change of the user resets this."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def set_limits(limits: Sequence[tuple[int, int]]) -> None:
    """Sets resource limits, soft and hard alike, setrlimit(2)."""
    for kind, limit in limits:
        _, hard = resource.getrlimit(kind)
        value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (value, value))


def drop_privileges() -> None:
    """Becomes `NOBODY` if this is root, and gives up every capability, capabilities(7). Raises OSError."""
    assert _libc is not None
    for capability in range(_LAST_CAPABILITY + 1):
        with suppress(OSError):  # beyond the kernel's last one, or not root
            _prctl(_PR_CAPBSET_DROP, capability)
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    none = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(ctypes.byref(_CapabilityHeader(_CAPABILITY_VERSION_3, 0)), none), "capset")
    _prctl(_PR_SET_DUMPABLE, 0)


def restrict_files(rules: Iterable[tuple[str, int]]) -> None:
    """Allows this process only the given rights below the given paths, landlock(7). Raises OSError.

    Where the kernel knows how, also forbids TCP and signals to processes outside. Leaves out missing paths.
    """
    assert _libc is not None
    version = get_landlock_version()
    handled = (1 << _FILE_RIGHTS.get(version, 16)) - 1
    attributes = _RulesetAttributes(handled, _ALL_NETWORK if version >= 4 else 0, _ALL_SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _check(
        _libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), 0), "landlock_create_ruleset"
    )
    for path, rights in rules:
        try:
            parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        allowed = rights & handled if Path(path).is_dir() else rights & handled & ~READ_DIR
        rule = _PathRule(allowed, parent)
        _check(_libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0), "landlock_add_rule")
        os.close(parent)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _check(_libc.syscall(_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def restrict_system_calls() -> None:
    """Allows this process only the calls of `syscalls`, seccomp(2). Cannot be undone. Raises OSError."""
    code = build_filter(os.getpid())
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _FilterProgram(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    assert _libc is not None
    _check(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0), "seccomp")


def _prctl(option: int, value: int) -> None:
    assert _libc is not None
    _check(_libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)), "prctl")


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None) -> None:
    assert _libc is not None
    texts = [None if text is None else text.encode() for text in (source, target, kind, options)]
    _check(_libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]), f"mount {target}")


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
