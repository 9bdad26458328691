"""The limits of a program, and what it leaves behind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

MAX_FILES = 8
"""Input files of one call."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """The most a program may use. Sizes in bytes."""

    seconds: float = 10.0
    """Wall-clock and CPU time."""
    memory_bytes: int = 512 * 2**20
    """Address space in addition to the interpreter's."""
    printed_bytes: int = 64 * 2**10
    result_bytes: int = 2**20
    """The result as JSON."""
    input_bytes: int = 64 * 2**20
    """All input files together."""
    folder_bytes: int = 32 * 2**20
    """The bytes that the program may write to its folder, which is in memory."""
    artifact_bytes: int = 8 * 2**20
    """All files together that are returned from this folder."""
    artifacts: int = 20


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that a program wrote to its folder; `name` is its path there."""

    name: str
    content: bytes


Problem = Literal["program", "time", "memory", "output", "died"]
"""Why a program has no result: it raised an error, ran too long, used too much memory, printed or returned too much, or
ended without a result."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The result of a program: its value, its output and its files. With an `error` there is no value."""

    value: JsonValue
    printed: str
    artifacts: Sequence[Artifact]
    omitted_artifacts: int
    """Files that were not returned: too many, too large, or a name that is not plain ASCII."""
    cpu_s: float
    error: str | None = None
    problem: Problem | None = None
