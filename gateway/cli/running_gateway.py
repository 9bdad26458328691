"""Finds the running gateway of a data folder: its last start notes the address there, and commands ask if it answers.

`stepgate serve --port` is not seen by other commands, which read `AGENT_PORT`.
"""

import contextlib
import ipaddress
import json
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from agent.core.atomic_write import write_atomically
from agent.core.settings import Settings

ADDRESS_FILE: Final = "address"
"""In the data folder; a backup leaves it out. It stays when the gateway ends, so readers ask the address first."""
ASK_SECONDS: Final = 1.0
_MAX_BYTES: Final = 1_000


def note_address(settings: Settings, url: str) -> None:
    """Notes where this gateway listens. A folder that cannot be written costs other commands only this knowledge."""
    with contextlib.suppress(OSError):
        write_atomically(settings.data_dir / ADDRESS_FILE, f"{url}\n")


def find_running_gateway(settings: Settings) -> str | None:
    """The base URL, from this machine, of the gateway that was last started on the data folder, or else of one at the
    configured address; None if neither answers. Blocks for at most 2 s.
    """
    noted, configured = find_noted_gateway(settings), get_configured_url(settings)
    return noted or (configured if is_gateway(configured) else None)


def find_noted_gateway(settings: Settings) -> str | None:
    """The base URL of the gateway that was last started on the data folder, if one answers there. Blocks for at most a
    second.
    """
    noted = _read_address(settings.data_dir / ADDRESS_FILE)
    return noted if noted is not None and is_gateway(noted) else None


def get_configured_url(settings: Settings) -> str:
    """Where a gateway of these settings is reached from this machine."""
    return format_url(settings.host, settings.port)


def format_url(host: str, port: int) -> str:
    """The base URL of a gateway from this machine: one that listens at every address is at 127.0.0.1."""
    name = "127.0.0.1" if _is_every_address(host) else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _is_every_address(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def is_gateway(url: str) -> bool:
    """Whether a Stepgate answers there. Blocks for at most `ASK_SECONDS` after the connection."""
    from http.client import HTTPConnection, HTTPException  # noqa: PLC0415 - only for commands that ask

    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=ASK_SECONDS)
    try:
        connection.request("GET", "/health")
        health = json.loads(connection.getresponse().read(_MAX_BYTES))
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()
    return isinstance(health, dict) and health.get("service") == "stepgate"


def _read_address(path: Path) -> str | None:
    """The noted base URL; None without one that can be used."""
    try:
        address = urlsplit(path.read_text("utf-8").strip())
        host, port = address.hostname, address.port
    except (OSError, ValueError):
        return None
    return format_url(host, port) if address.scheme == "http" and host and port else None
