"""Checks a GGUF file before it is loaded, so that a wrong one is named in a sentence."""

import os
from pathlib import Path

from agent.core.errors import ConfigError

_MAGIC = b"GGUF"
_MEMORY_SHARE = 1.1
"""Memory that a model needs, as a multiple of its file: the context comes on top."""


def check_model_file(path: Path) -> int:
    """The size of a model's file, in bytes. Raises `ConfigError` if it cannot be served."""
    try:
        with path.open("rb") as file:
            magic, size = file.read(len(_MAGIC)), os.fstat(file.fileno()).st_size
    except FileNotFoundError as error:
        raise ConfigError(f"{path} does not exist") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    if magic != _MAGIC:
        raise ConfigError(f"{path} is not a GGUF file; models of llama.cpp end in .gguf (docs/local-models.md)")
    free = find_free_memory()
    if free is not None and size * _MEMORY_SHARE > free:
        raise ConfigError(
            f"{path} needs about {size * _MEMORY_SHARE / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free; "
            "choose a smaller model or quantization"
        )
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
