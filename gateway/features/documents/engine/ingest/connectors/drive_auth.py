"""`Account`: access tokens from a service account's key or a refresh token, cached while valid."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from agent.storage.credentials import Bearer, GoogleOAuth, GoogleServiceAccount, SourceCredential
from gateway.features.documents.engine.ingest.connectors.oauth_token import EARLY_SECONDS, parse_object, request_token
from gateway.features.documents.engine.ingest.connectors.source_client import SourceClient, build_status_error
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorError

SCOPE = "https://www.googleapis.com/auth/drive.readonly"
"""Read-only access: a stolen token can neither change nor delete files."""
ASSERTION_SECONDS = 3600
"""The longest lifetime that Google accepts."""
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class AccountError(ConnectorAuthError):
    """Raised when the account itself is refused, so requesting further files is useless."""


class Account:
    """One credential in use. Concurrent callers share one token request."""

    def __init__(
        self,
        name: str,
        credential: SourceCredential,
        client: SourceClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.credential = credential
        self._name = name
        self._client = replace(client, error_for_status=self._make_token_error)
        self._clock = clock
        self._now = now
        self._lock = asyncio.Lock()
        self._token = credential.token.get_secret_value() if isinstance(credential, Bearer) else ""
        self._until = float("inf") if self._token else 0.0

    @property
    def display_name(self) -> str:
        """The account that a file must be shared with, for error messages."""
        if isinstance(self.credential, GoogleServiceAccount):
            return self.credential.subject or self.credential.client_email
        whose = "made the refresh token" if isinstance(self.credential, GoogleOAuth) else "the token belongs to"
        return f"the account that {whose} of the credential {self._name!r}"

    async def get_token(self) -> str:
        """A token that is valid for at least a minute. Raises `AccountError` if Google issues none."""
        async with self._lock:
            if self._clock() >= self._until - EARLY_SECONDS:
                self._token, life = await self._request_token()
                self._until = self._clock() + life
            return self._token

    async def invalidate(self, refused: str) -> None:
        """Invalidates a refused token unless it was replaced meanwhile. Raises `AccountError` if it cannot be
        replaced."""
        if isinstance(self.credential, Bearer):
            raise AccountError(
                f"Google refuses the token of the credential {self._name!r}: it is expired or revoked: replace it"
            )
        async with self._lock:
            if self._token == refused:
                self._until = 0.0

    async def _request_token(self) -> tuple[str, float]:
        """Requests a token; returns it with its lifetime in seconds."""
        credential = self.credential
        assert not isinstance(credential, Bearer)
        if isinstance(credential, GoogleOAuth):
            form = {
                "grant_type": "refresh_token",
                "client_id": credential.client_id,
                "client_secret": credential.client_secret.get_secret_value(),
                "refresh_token": credential.refresh_token.get_secret_value(),
            }
        else:
            assertion = await asyncio.to_thread(self._sign_assertion, credential)
            form = {"grant_type": _JWT_BEARER, "assertion": assertion}
        return await request_token(self._client, credential.token_uri, form)

    def _sign_assertion(self, credential: GoogleServiceAccount) -> str:
        """The signed claim that is exchanged for a token (RFC 7523)."""
        import jwt  # noqa: PLC0415 - brings 9 MB of cryptography, which only a service account needs

        issued = int(self._now())
        claims: dict[str, str | int] = {
            "iss": credential.client_email,
            "scope": SCOPE,
            "aud": credential.token_uri,
            "iat": issued,
            "exp": issued + ASSERTION_SECONDS,
        }
        if credential.subject:
            claims["sub"] = credential.subject
        headers = {"kid": credential.private_key_id} if credential.private_key_id else None
        try:
            return jwt.encode(claims, credential.private_key.get_secret_value(), algorithm="RS256", headers=headers)
        except (ValueError, TypeError, jwt.PyJWTError):
            unusable = f"the private_key of the credential {self._name!r} is not an RSA key"
        # Outside of `except`: what went wrong with a key may quote it.
        raise AccountError(f"{unusable}: take it from Google's key file as it is, with its line breaks")

    def _make_token_error(self, url: str, status: int, headers: Mapping[str, str], body: bytes) -> ConnectorError:
        """The error for a response of the token endpoint (RFC 6749, 5.2)."""
        reply_data = parse_object(body)
        code = reply_data.get("error")
        if status not in (400, 401, 403) or not isinstance(code, str):
            return build_status_error(url, status, headers, body)
        problem = f"Google gives no token for the credential {self._name!r} ({make_printable_line(code)}"
        problem += (
            f": {make_printable_line(reply_data['error_description'])})" if reply_data.get("error_description") else ")"
        )
        if isinstance(self.credential, GoogleServiceAccount):
            remedy = "make a new key for the service account, and check this machine's clock"
            if code == "unauthorized_client":
                remedy = f"let an administrator allow it to act for {self.display_name}, for {SCOPE}"
        elif code == "invalid_grant":
            remedy = "the refresh token is expired or revoked: make a new one"
        else:
            remedy = "check client_id and client_secret"
        return AccountError(f"{problem}: {remedy} (docs/connectors.md)", status=status)


def make_printable_line(reply_data: object) -> str:
    """External text as one printable line of at most 200 characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(reply_data)).split())[:200]
