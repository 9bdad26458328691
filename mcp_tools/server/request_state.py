"""Sealed `requestState`: state that a client carries from one round of a call to the next.

The SDK seals with a key of the process, so an approval would break at a restart and across workers. Our key is a file
in the data folder, which all workers of a gateway share.
"""

from pathlib import Path

from mcp.server.request_state import AESGCMRequestStateCodec, RequestStateBoundary, RequestStateSecurity

from agent.core.key_file import load_or_create_key

SERVER_NAME = "stepgate"
"""The audience of sealed state: changing it invalidates calls that wait for an answer."""
TTL_SECONDS = 3_600.0
"""How long the user may take to answer, in seconds; the SDK's ten minutes are short for an approval."""


def make_state_boundary(key_file: Path) -> RequestStateBoundary:
    """The middleware that seals and opens `requestState` with the key in `key_file`."""
    security = RequestStateSecurity(codec=_KeyFileCodec(key_file), ttl=TTL_SECONDS)
    return RequestStateBoundary(security, default_audience=SERVER_NAME)


class _KeyFileCodec:
    """AES-256-GCM with the key of a file. The key is loaded or created at the first use."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._codec: AESGCMRequestStateCodec | None = None

    def seal(self, payload: bytes) -> str:
        return self._get_codec().seal(payload)

    def unseal(self, token: str) -> bytes:
        return self._get_codec().unseal(token)

    def _get_codec(self) -> AESGCMRequestStateCodec:
        if self._codec is None:
            self._codec = AESGCMRequestStateCodec([load_or_create_key(self._key_file)])
        return self._codec
