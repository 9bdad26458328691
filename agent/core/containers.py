"""Containers: from inside one, 127.0.0.1 is the container, and programs of its host have another address."""

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

HOST_NAME: Final = "host.docker.internal"
"""The host of a container, by Docker Desktop and Podman; on Linux Docker needs `ADD_HOST` for it."""
ADD_HOST: Final = f"--add-host={HOST_NAME}:host-gateway"
_CLUSTER_VARIABLE: Final = "KUBERNETES_SERVICE_HOST"
_VARIABLES: Final = (_CLUSTER_VARIABLE, "container")
CONTAINER_FILES: tuple[Path, ...] = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files of Docker's and Podman's containers. Tests empty it: they may run in one."""
_OLLAMA: Final = "http://127.0.0.1:11434/v1"


def is_in_container(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process runs in a container of Docker, Podman or Kubernetes."""
    return any(environment.get(name) for name in _VARIABLES) or any(file.exists() for file in CONTAINER_FILES)


def get_example_address(environment: Mapping[str, str] = os.environ) -> str:
    """Where Ollama usually is, as this process has to name it."""
    return _name_from_here(_OLLAMA, environment) if is_in_container(environment) else _OLLAMA


def describe_unreached(
    address: str, *, is_name_unknown: bool = False, environment: Mapping[str, str] = os.environ
) -> str:
    """What to try where no connection to `address` could be made, as the end of a sentence; "" outside of containers,
    and where the container does not explain it.
    """
    host = urlsplit(address).hostname or ""
    if not is_in_container(environment) or not (host == HOST_NAME or _is_loopback(host)):
        return ""
    if host == HOST_NAME and is_name_unknown:
        return f"; start the container with {ADD_HOST}"
    if host == HOST_NAME:
        return "; from a container it is reached only if it listens beyond 127.0.0.1 (Ollama: OLLAMA_HOST=0.0.0.0)"
    return (
        f"; the gateway runs in a container, where {host} is the container itself: name the program's address outside, "
        f"such as {_name_from_here(address, environment)}"
    )


def _name_from_here(address: str, environment: Mapping[str, str]) -> str:
    """The address of a program of this machine, as a process in a container names it: in a cluster by the name of its
    service.
    """
    parts = urlsplit(address)
    host = "ollama" if environment.get(_CLUSTER_VARIABLE) else HOST_NAME
    return urlunsplit(parts._replace(netloc=f"{host}:{parts.port}" if parts.port else host))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
