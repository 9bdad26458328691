"""Binds the gateway's address: for `stepgate serve`, and for `stepgate doctor`, which only tries."""

import errno
import socket

from agent.core.errors import ConfigError
from agent.core.settings import Settings

_PORT_HINTS = {
    errno.EADDRINUSE: "is a gateway already running? Otherwise choose another port",
    errno.EACCES: "ports below 1024 are reserved; choose a higher one",
}


class PortError(ConfigError):
    """Raised for a port that cannot be bound at an address that can."""


def bind_socket(settings: Settings) -> socket.socket:
    """Returns the listening socket. Raises `PortError` or `ConfigError`, naming the setting."""
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
    hint = _PORT_HINTS.get(error.errno or 0)
    if hint is not None:
        return PortError(f"AGENT_PORT: {settings.host}:{settings.port} cannot be bound: {error.strerror}; {hint}")
    return ConfigError(
        f"AGENT_HOST: {settings.host!r} is not an address of this machine: {error.strerror}; use 127.0.0.1 for "
        "programs on this machine, 0.0.0.0 for the network"
    )
