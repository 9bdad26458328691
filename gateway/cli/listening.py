"""The gateway's address, bound: for `stepgate serve`, and for `stepgate doctor`, which only tries."""

import errno
import socket

from agent.core.config import Settings
from agent.core.errors import ConfigError

_OF_THE_PORT = {
    errno.EADDRINUSE: "is a gateway running already? else choose another port",
    errno.EACCES: "ports below 1024 are for the system; choose a higher one",
}


class PortError(ConfigError):
    """Raised for a port that cannot be had at an address that can."""


def listen(settings: Settings) -> socket.socket:
    """The listening socket; `PortError` or `ConfigError` naming the setting when the address cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise _refusal(settings, error) from error
    return listening


def _refusal(settings: Settings, error: OSError) -> ConfigError:
    hint = _OF_THE_PORT.get(error.errno or 0)
    if hint is not None:
        return PortError(f"AGENT_PORT: {settings.host}:{settings.port} cannot be bound: {error.strerror}; {hint}")
    return ConfigError(
        f"AGENT_HOST: {settings.host!r} is no address of this machine: {error.strerror}; 127.0.0.1 is for programs "
        "here, 0.0.0.0 for the network"
    )
