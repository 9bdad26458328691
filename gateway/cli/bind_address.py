"""Binds the gateway's address: for `stepgate serve`, and for `stepgate doctor`, which only tries."""

import errno
import socket

from agent.core.errors import ConfigError
from agent.core.settings import Settings

TRIED_PORTS = 20
"""How many ports after the taken one are tried for the command in the message."""


class PortError(ConfigError):
    """Raised for a port that cannot be bound at an address that can."""


def bind_socket(settings: Settings) -> socket.socket:
    """The listening socket. Raises `PortError` or `ConfigError`, naming the setting."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise _bind_error(settings, error) from error
    return listening


def _bind_error(settings: Settings, error: OSError) -> ConfigError:
    hint = _make_port_hint(settings, error.errno)
    if hint is not None:
        return PortError(f"AGENT_PORT: {settings.host}:{settings.port} cannot be bound: {error.strerror}; {hint}")
    return ConfigError(
        f"AGENT_HOST: {settings.host!r} is not an address of this machine: {error.strerror}; use 127.0.0.1 for "
        "programs on this machine, 0.0.0.0 for the network"
    )


def _make_port_hint(settings: Settings, number: int | None) -> str | None:
    if number == errno.EACCES:
        return "ports below 1024 are reserved; choose a higher one"
    if number != errno.EADDRINUSE:
        return None
    free = _find_free_port(settings)
    if free is None:
        return "is a gateway already running? Otherwise choose another port"
    return f"is a gateway already running? Otherwise: stepgate serve --port {free}"


def _find_free_port(settings: Settings) -> int | None:
    """The next port that can be bound."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    for port in range(settings.port + 1, min(settings.port + 1 + TRIED_PORTS, 65_536)):
        with socket.socket(family) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((settings.host, port))
            except OSError:
                continue
            return port
    return None
