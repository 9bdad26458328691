"""Sealed `requestState`: what a server hands a client to carry from one round of a call to the next.

The SDK seals under a key of the process; an approval would then break at a restart and between workers. Ours lies in
the data folder, which the workers of a gateway share."""

import os
import secrets
from pathlib import Path

from mcp.server.request_state import AESGCMRequestStateCodec, RequestStateBoundary, RequestStateSecurity

SERVER_NAME = "stepgate"
"""Part of what is sealed: changing it makes open rounds invalid."""
KEY_BYTES = 32
TTL_SECONDS = 3_600.0
"""How long a person may take to answer; the SDK's ten minutes are short for an approval."""


def sealing(key_file: Path) -> RequestStateBoundary:
    """The middleware that seals and opens `requestState`, with the key in `key_file`."""
    security = RequestStateSecurity(codec=_KeptKeyCodec(key_file), ttl=TTL_SECONDS)
    return RequestStateBoundary(security, default_audience=SERVER_NAME)


def kept_key(path: Path) -> str:
    """The key in this file, made at first use, readable by its owner alone. `OSError` when it cannot be kept."""
    try:
        return path.read_text("ascii")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_text(secrets.token_hex(KEY_BYTES), "ascii")
    try:
        os.link(draft, path)  # unlike a rename it fails where another worker was first, whose key then holds
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text("ascii")


class _KeptKeyCodec:
    """AES-256-GCM with the key of a file, which is read (or made) when something is first sealed or opened."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._codec: AESGCMRequestStateCodec | None = None

    def seal(self, payload: bytes) -> str:
        return self._opened().seal(payload)

    def unseal(self, token: str) -> bytes:
        return self._opened().unseal(token)

    def _opened(self) -> AESGCMRequestStateCodec:
        if self._codec is None:
            self._codec = AESGCMRequestStateCodec([kept_key(self._key_file)])
        return self._codec
