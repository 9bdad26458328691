"""`IssuerKeys`: the public keys with which an issuer of tokens signs."""

import threading
import time
from typing import TYPE_CHECKING

from agent.core.errors import AuthError, StoreError

if TYPE_CHECKING:
    from jwt import PyJWK

FETCH_SECONDS = 5
KEPT_SECONDS = 300
"""How old the keys may be."""
NEW_KEY_SECONDS = 30
"""How often an unknown key id leads to a fetch: anybody can send tokens that name keys which do not exist."""
RETRY_SECONDS = 5
"""How soon the keys are fetched again after a failure."""


class IssuerKeys:
    """An issuer's keys, fetched when they are needed. Several threads may use it."""

    def __init__(self, url: str) -> None:
        import jwt  # noqa: PLC0415 - 9 MB of cryptography, needed only for tokens

        self._url = url
        self._client = jwt.PyJWKClient(url, timeout=FETCH_SECONDS, cache_jwk_set=False)
        self._keys: dict[str, PyJWK] = {}
        self._fetched_at = self._next_fetch_at = float("-inf")
        self._failure: Exception | None = None
        self._fetching = threading.Lock()

    def find(self, key_id: object) -> "PyJWK":
        """The key with this id. Raises `AuthError` if there is none, and `StoreError` if the keys cannot be fetched."""
        if (key := self._get(key_id)) is not None:
            return key
        with self._fetching:
            if (key := self._get(key_id)) is None and time.monotonic() >= self._next_fetch_at:
                self._fetch()
                key = self._get(key_id)
            if key is not None:
                return key
            if self._failure is not None:
                raise StoreError(
                    f"the keys of the token's issuer cannot be fetched from {self._url}; try again", agent_id="tokens"
                ) from self._failure
        raise AuthError(f"the bearer token is not valid here: its issuer has no key {str(key_id)[:100]!r}")

    def _get(self, key_id: object) -> "PyJWK | None":
        is_old = time.monotonic() - self._fetched_at >= KEPT_SECONDS
        return None if is_old or not isinstance(key_id, str) else self._keys.get(key_id)

    def _fetch(self) -> None:
        import jwt  # noqa: PLC0415 - see above

        self._failure, pause = None, RETRY_SECONDS
        try:
            self._keys = {str(key.key_id): key for key in self._client.get_signing_keys()}
            self._fetched_at, pause = time.monotonic(), NEW_KEY_SECONDS
        except jwt.PyJWKClientConnectionError as error:
            self._failure = error
        finally:
            self._next_fetch_at = time.monotonic() + pause
