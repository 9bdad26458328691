"""The system calls that a program in the sandbox may make, by machine, and the seccomp filter that allows only these.

Everything else fails with EPERM: sockets, exec, fork and threads, ptrace, signals to others, mounts, namespaces,
io_uring, bpf, keys. Numbers: `asm/unistd_64.h` for x86_64, `asm-generic/unistd.h` for aarch64.
"""

import errno
import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass

_X86_64 = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8, "mmap": 9,
    "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
    "pread64": 17, "pwrite64": 18, "readv": 19, "writev": 20, "access": 21, "pipe": 22, "select": 23,
    "sched_yield": 24, "mremap": 25, "madvise": 28, "dup": 32, "dup2": 33, "nanosleep": 35, "getpid": 39, "exit": 60,
    "uname": 63, "fsync": 74, "fdatasync": 75, "truncate": 76, "ftruncate": 77, "getcwd": 79, "chdir": 80,
    "fchdir": 81, "rename": 82, "mkdir": 83, "rmdir": 84, "unlink": 87, "readlink": 89, "umask": 95,
    "gettimeofday": 96, "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107,
    "getegid": 108, "getppid": 110, "getgroups": 115, "getresuid": 118, "getresgid": 120, "getpgid": 121,
    "getsid": 124, "sigaltstack": 131, "statfs": 137, "fstatfs": 138, "gettid": 186, "time": 201, "futex": 202,
    "sched_getaffinity": 204, "getdents64": 217, "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229,
    "clock_nanosleep": 230, "exit_group": 231, "openat": 257, "mkdirat": 258, "newfstatat": 262, "unlinkat": 263,
    "renameat": 264, "readlinkat": 267, "faccessat": 269, "pselect6": 270, "ppoll": 271, "set_robust_list": 273,
    "utimensat": 280, "dup3": 292, "pipe2": 293, "renameat2": 316, "getrandom": 318, "statx": 332, "rseq": 334,
    "faccessat2": 439,
}  # fmt: skip
_AARCH64 = {
    "getcwd": 17, "dup": 23, "dup3": 24, "mkdirat": 34, "unlinkat": 35, "renameat": 38, "statfs": 43, "fstatfs": 44,
    "truncate": 45, "ftruncate": 46, "faccessat": 48, "chdir": 49, "fchdir": 50, "openat": 56, "close": 57,
    "pipe2": 59, "getdents64": 61, "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66, "pread64": 67,
    "pwrite64": 68, "pselect6": 72, "ppoll": 73, "readlinkat": 78, "newfstatat": 79, "fstat": 80, "fsync": 82,
    "fdatasync": 83, "utimensat": 88, "exit": 93, "exit_group": 94, "futex": 98, "set_robust_list": 99,
    "nanosleep": 101, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115, "sched_getaffinity": 123,
    "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135,
    "rt_sigreturn": 139, "getresuid": 148, "getresgid": 150, "times": 153, "getpgid": 155, "getsid": 156,
    "getgroups": 158, "uname": 160, "getrusage": 165, "umask": 166, "gettimeofday": 169, "getpid": 172,
    "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177, "gettid": 178, "sysinfo": 179,
    "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222, "mprotect": 226, "madvise": 233, "renameat2": 276,
    "getrandom": 278, "statx": 291, "rseq": 293, "faccessat2": 439,
}  # fmt: skip

_FCNTL_COMMANDS = (0, 1, 2, 3, 4, 5, 6, 7, 1030)
"""F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, locks, F_DUPFD_CLOEXEC. F_SETOWN would send signals to others."""

_FIOCLEX = 0x5451
"""Python closes files on exec with this request, although there is no exec here. No other ioctl."""


@dataclass(frozen=True, slots=True)
class Machine:
    """An architecture: the audit number that seccomp sees (linux/audit.h), and its system calls."""

    audit_arch: int
    allowed: Mapping[str, int]
    fcntl: int
    ioctl: int
    tgkill: int
    prlimit64: int


MACHINES = {
    "x86_64": Machine(0xC000003E, _X86_64, fcntl=72, ioctl=16, tgkill=234, prlimit64=302),
    "aarch64": Machine(0xC00000B7, _AARCH64, fcntl=25, ioctl=29, tgkill=131, prlimit64=261),
}
"""By `platform.machine()`. On any other machine there is no sandbox."""

# Instructions of classic BPF (linux/bpf_common.h): load a word, jump if equal, jump if greater or equal, return.
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
# Results (linux/seccomp.h).
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
# Offsets in `struct seccomp_data` (linux/seccomp.h): int nr, u32 arch, u64 instruction_pointer, u64 args[6].
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_CLONE3 = 435
_X32_BIT = 0x40000000


def build_filter(own_pid: int) -> bytes:
    """The filter as an array of `struct sock_filter` for this machine. Raises KeyError on an unknown one.

    `tgkill` may only reach `own_pid`: abort() needs it.
    """
    machine = MACHINES[platform.machine()]
    program = [
        _instruction(_LOAD, _ARCH),
        _instruction(_EQUAL, machine.audit_arch, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
        # x32 calls have other numbers on x86_64.
        _instruction(_AT_LEAST, _X32_BIT, 0, 1),
        _instruction(_RETURN, _KILL),
    ]
    for number in sorted(machine.allowed.values()):
        program += [_instruction(_EQUAL, number, 0, 1), _instruction(_RETURN, _ALLOW)]
    program += _allow_with_argument(machine.fcntl, 1, _FCNTL_COMMANDS)
    program += _allow_with_argument(machine.ioctl, 1, (_FIOCLEX,))
    program += _allow_with_argument(machine.tgkill, 0, (own_pid,))
    program += _allow_with_argument(machine.prlimit64, 2, (0,))  # no new limits, so limits can only be read
    # The C library falls back to other calls if the kernel does not know clone3.
    program += [_instruction(_EQUAL, _CLONE3, 0, 1), _instruction(_RETURN, _ERRNO | errno.ENOSYS)]
    program.append(_instruction(_RETURN, _ERRNO | errno.EPERM))
    return b"".join(program)


def _allow_with_argument(number: int, index: int, values: tuple[int, ...]) -> list[bytes]:
    """Allows a system call if its argument `index`, as 64 bits, is one of the 32-bit values; else refuses it."""
    low, high = _ARGUMENTS + 8 * index, _ARGUMENTS + 8 * index + 4  # both machines are little-endian
    checks = [_instruction(_LOAD, high), _instruction(_EQUAL, 0, 1, 0), _instruction(_RETURN, _ERRNO | errno.EPERM)]
    checks.append(_instruction(_LOAD, low))
    for value in values:
        checks += [_instruction(_EQUAL, value, 0, 1), _instruction(_RETURN, _ALLOW)]
    checks.append(_instruction(_RETURN, _ERRNO | errno.EPERM))
    return [_instruction(_EQUAL, number, 0, len(checks)), *checks]


def _instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """`struct sock_filter` (linux/filter.h): u16 code, u8 jt, u8 jf, u32 k."""
    return struct.pack("=HBBI", code, if_true, if_false, operand)
