"""`Account`: who we are to Google. Tokens from a service account's key or a refresh token, kept while they last."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import urlencode

from agent.core.credentials import Bearer, GoogleOAuth, GoogleServiceAccount, SourceCredential
from agent.core.models import JsonObject
from agent.knowledge.connectors.base import Wire, judge
from agent.knowledge.errors import ConnectorAuthError, ConnectorError

SCOPE = "https://www.googleapis.com/auth/drive.readonly"
"""Reading, and nothing else: a stolen token can neither change nor delete."""
EARLY_SECONDS = 60.0
"""A token this close to its end is renewed first, so that it does not end on the way."""
ASSERTION_SECONDS = 3600
"""The most that Google accepts."""
_UNKNOWN_LIFE_SECONDS = 300.0
_MAX_REPLY_BYTES = 100_000
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class AccountError(ConnectorAuthError):
    """Raised when the account itself is refused, so that asking for the next file is no use."""


class Account:
    """One credential in use. Many may ask at once; one request for a token serves them all."""

    def __init__(
        self,
        name: str,
        credential: SourceCredential,
        wire: Wire,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.credential = credential
        self._name = name
        self._wire = replace(wire, judge=self._judge)
        self._clock = clock
        self._now = now
        self._lock = asyncio.Lock()
        self._token = credential.token.get_secret_value() if isinstance(credential, Bearer) else ""
        self._until = float("inf") if self._token else 0.0

    @property
    def who(self) -> str:
        """Whom a file must be shared with, in words for an error."""
        if isinstance(self.credential, GoogleServiceAccount):
            return self.credential.subject or self.credential.client_email
        whose = "made the refresh token" if isinstance(self.credential, GoogleOAuth) else "the token belongs to"
        return f"the account that {whose} of the credential {self._name!r}"

    async def token(self) -> str:
        """A token that is good for a minute at least. `AccountError` when Google gives none."""
        async with self._lock:
            if self._clock() >= self._until - EARLY_SECONDS:
                self._token, life = await self._fresh()
                self._until = self._clock() + life
            return self._token

    async def renew(self, refused: str) -> None:
        """Forget the token that was refused, unless it has been replaced since. `AccountError` where it cannot be."""
        if isinstance(self.credential, Bearer):
            raise AccountError(
                f"Google refuses the token of the credential {self._name!r}: it is expired or revoked, put in a new one"
            )
        async with self._lock:
            if self._token == refused:
                self._until = 0.0

    async def _fresh(self) -> tuple[str, float]:
        """A new token and how long it lasts, in seconds."""
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
            assertion = await asyncio.to_thread(self._assertion, credential)
            form = {"grant_type": _JWT_BEARER, "assertion": assertion}
        reply = await self._wire.read(
            credential.token_uri,
            method="POST",
            content=urlencode(form).encode(),
            headers=_form_headers,
            max_bytes=_MAX_REPLY_BYTES,
        )
        said = _object(reply.body)
        token, life = said.get("access_token"), said.get("expires_in")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
            raise ConnectorError(f"{credential.token_uri} answered without an access token; try again later")
        return token, float(life) if isinstance(life, int | float) and life > 0 else _UNKNOWN_LIFE_SECONDS

    def _assertion(self, credential: GoogleServiceAccount) -> str:
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
            unusable = f"the private_key of the credential {self._name!r} is no RSA key"
        # Outside of `except`: what went wrong with a key may quote it.
        raise AccountError(f"{unusable}: take it from Google's key file as it is, with its line breaks")

    def _judge(self, url: str, status: int, headers: Mapping[str, str], body: bytes) -> ConnectorError:
        """What a refusal of the token endpoint means (RFC 6749, 5.2)."""
        said = _object(body)
        code = said.get("error")
        if status not in (400, 401, 403) or not isinstance(code, str):
            return judge(url, status, headers, body)
        told = f"Google gives no token for the credential {self._name!r} ({quoted(code)}"
        told += f": {quoted(said['error_description'])})" if said.get("error_description") else ")"
        if isinstance(self.credential, GoogleServiceAccount):
            remedy = "make a new key for the service account, and check this machine's clock"
            if code == "unauthorized_client":
                remedy = f"let an administrator allow it to act for {self.who}, for {SCOPE}"
        elif code == "invalid_grant":
            remedy = "the refresh token is expired or revoked: make a new one"
        else:
            remedy = "check client_id and client_secret"
        return AccountError(f"{told}: {remedy} (docs/connectors.md)", status=status)


async def _form_headers(_: str) -> Mapping[str, str]:
    return {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}


def _object(body: bytes) -> JsonObject:
    """A JSON object; empty for anything else."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def quoted(said: object) -> str:
    """What a stranger says, fit for one line of ours."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(said)).split())[:200]
