"""Checks a GGUF file before it is loaded, so that a wrong one is named in a sentence."""

import os
from pathlib import Path

from agent.core.errors import ConfigError
from agent.llm.gguf_parts import list_parts

_MAGIC = b"GGUF"
_MEMORY_SHARE = 1.1
"""Memory that a model needs, as a multiple of its file: the context comes on top."""


def check_model_file(path: Path) -> int:
    """The size of a model's file, in bytes, with all its parts. Raises `ConfigError` if it cannot be served."""
    parts = list_parts(path.name)
    if path.name != parts[0]:
        raise ConfigError(f"{path} is a further part of a model; name its first part, {path.with_name(parts[0])}")
    size = sum(_check_part(path.with_name(part), path) for part in parts)
    free = find_free_memory()
    if free is not None and size * _MEMORY_SHARE > free:
        raise ConfigError(
            f"{path} needs about {size * _MEMORY_SHARE / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free; "
            "choose a smaller model or quantization"
        )
    return size


def _check_part(part: Path, first: Path) -> int:
    """The size of one part of a model, in bytes."""
    try:
        with part.open("rb") as file:
            magic, size = file.read(len(_MAGIC)), os.fstat(file.fileno()).st_size
    except FileNotFoundError as error:
        beside = "" if part == first else f"; all parts of {first.name} belong in one folder"
        raise ConfigError(f"{part} does not exist{beside}") from error
    except OSError as error:
        raise ConfigError(f"{part} cannot be read: {error.strerror}") from error
    if magic != _MAGIC:
        raise ConfigError(f"{part} is not a GGUF file; models of llama.cpp end in .gguf (docs/local-models.md)")
    return size


def find_free_memory() -> int | None:
    """The bytes of memory that a new process can have; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        memory_line = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(memory_line.split()[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def find_loaded_bytes(pid: int) -> int:
    """Measures how much of mapped files a process has in memory; 0 where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssFile:", "RssAnon:")))
    except (OSError, ValueError, IndexError):
        return 0
