"""Bearer tokens of other issuers: verifiers for callers that have no API key of this gateway.

`JwtVerifier` accepts the signed tokens of an OpenID provider. `AGENT_TOKEN_VERIFIER=package.module:factory` plugs in
another verifier.
"""

import asyncio
import importlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent.core.errors import AuthError, ConfigError
from agent.core.models import LOCAL_OWNER
from agent.core.settings import Settings
from agent.storage.api_keys import SCOPES, KeyLimits
from gateway.access.issuer_keys import IssuerKeys
from gateway.access.issuer_metadata import find_keys_url

ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
"""Only public-key signatures: a token that is unsigned or signed with a shared secret proves nothing."""
LEEWAY_SECONDS = 30
MAX_TOKEN_CHARS = 16_000
_DEFAULT_SCOPES = frozenset({"chat", "agent", "mcp"})
"""Scopes of a token that names none of ours."""


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """The owner a token speaks for, and what it allows. `expires_at` is in UTC seconds."""

    owner: str
    name: str
    scopes: frozenset[str] = _DEFAULT_SCOPES
    tools: tuple[str, ...] | None = None
    limits: KeyLimits = field(default_factory=KeyLimits)
    """Only requests a minute apply; budgets and tokens a minute need an API key."""
    expires_at: float | None = None


class TokenVerifier(Protocol):
    """Verifies tokens. A plug-in is a factory that takes `Settings` and returns one."""

    async def verify(self, token: str) -> TokenGrant | None:
        """The grant of the token; None if it is not a token of this kind.

        Raises `AuthError` for an invalid token, and `StoreError` if it cannot be verified now.
        """
        ...


class JwtVerifier:
    """Verifies JSON Web Tokens (RFC 7519) with the public keys that the issuer publishes.

    The audience must be this gateway: a token made for another service is refused. No token is passed on.
    """

    def __init__(self, issuer: str, audience: str, keys_url: str | None = None) -> None:
        """`keys_url` is where the keys are; None: where the issuer's metadata says."""
        self._issuer = issuer
        self._audience = audience
        self._keys_url = keys_url
        self._keys: IssuerKeys | None = None

    async def verify(self, token: str) -> TokenGrant | None:
        """See `TokenVerifier.verify`."""
        if token.count(".") != 2:
            return None
        if len(token) > MAX_TOKEN_CHARS:
            raise AuthError(f"a bearer token has at most {MAX_TOKEN_CHARS:,} characters")
        return self._build_grant(await asyncio.to_thread(self._decode_claims, token))

    def _decode_claims(self, token: str) -> Mapping[str, Any]:
        import jwt  # noqa: PLC0415 - 9 MB of cryptography, needed only for tokens

        if self._keys is None:
            self._keys = IssuerKeys(self._keys_url or find_keys_url(self._issuer))
        try:
            key = self._keys.find(jwt.get_unverified_header(token).get("kid"))
            claims: Mapping[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=list(ALGORITHMS),
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "aud", "iss"]},
            )
        except (jwt.PyJWTError, ValueError) as error:
            raise AuthError(f"the bearer token is not valid here: {str(error)[:200]}") from error
        return claims

    def _build_grant(self, claims: Mapping[str, Any]) -> TokenGrant:
        owner = claims.get("sub")
        if not isinstance(owner, str) or not owner.strip() or owner == LOCAL_OWNER or len(owner) > 200:
            raise AuthError("the bearer token has no owner in its claim 'sub'")
        scope_claim = claims.get("scope", claims.get("scp"))
        words = (
            scope_claim.split()
            if isinstance(scope_claim, str)
            else scope_claim
            if isinstance(scope_claim, list)
            else []
        )
        scopes = frozenset(scope for scope in SCOPES if scope in words or f"stepgate:{scope}" in words)
        name = claims.get("name") or claims.get("preferred_username") or owner
        return TokenGrant(
            owner, str(name)[:200], scopes or _DEFAULT_SCOPES, expires_at=float(claims["exp"]) + LEEWAY_SECONDS
        )


def build_token_verifier(settings: Settings) -> TokenVerifier | None:
    """The configured verifier, or None. Raises `ConfigError` for a verifier that cannot be loaded."""
    if settings.token_verifier is not None:
        if settings.jwt_issuer is not None:
            raise ConfigError("AGENT_TOKEN_VERIFIER: cannot be combined with AGENT_JWT_ISSUER; unset one of them")
        return _load_verifier(settings.token_verifier, settings)
    if settings.jwt_issuer is None:
        return None
    if settings.jwt_audience is None:
        raise ConfigError("AGENT_JWT_AUDIENCE: set the audience that the tokens must have")
    if settings.jwt_keys_url is None and not settings.jwt_issuer.startswith(("https://", "http://")):
        raise ConfigError("AGENT_JWT_ISSUER: must begin with https:// (or http://), as the `iss` of its tokens does")
    return JwtVerifier(settings.jwt_issuer, settings.jwt_audience, settings.jwt_keys_url)


def is_expired(grant: TokenGrant) -> bool:
    """Whether the grant has expired."""
    return grant.expires_at is not None and grant.expires_at <= time.time()


def _load_verifier(name: str, settings: Settings) -> TokenVerifier:
    module, _, attribute = name.partition(":")
    try:
        made: TokenVerifier = getattr(importlib.import_module(module), attribute)(settings)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(
            f"AGENT_TOKEN_VERIFIER: {name!r} does not return a verifier (package.module:factory): {error}"
        ) from error
    return made
