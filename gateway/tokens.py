"""Bearer tokens of others: who vouches for a caller that has no key of ours.

`JwtVerifier` takes the signed tokens of an OpenID provider. Another verifier is plugged in by its factory's name
(`AGENT_TOKEN_VERIFIER=package.module:factory`).
"""

import asyncio
import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent.core.config import Settings
from agent.core.errors import AuthError, ConfigError, StoreError
from agent.core.keys import SCOPES, KeyLimits
from agent.core.models import LOCAL_OWNER

ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
"""Signatures with a public key only: a token signed with a shared secret, or not at all, proves nothing to us."""
LEEWAY_SECONDS = 30
FETCH_SECONDS = 5
MAX_TOKEN_CHARS = 16_000
_UNSCOPED = frozenset({"chat", "agent", "mcp"})
"""What a token may do that names no scope of ours."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Who a token speaks for, and what it allows. `expires_at` is in UTC seconds."""

    owner: str
    name: str
    scopes: frozenset[str] = _UNSCOPED
    tools: tuple[str, ...] | None = None
    limits: KeyLimits = field(default_factory=KeyLimits)
    """Requests a minute count; budgets and tokens a minute are of API keys only."""
    expires_at: float | None = None


class TokenVerifier(Protocol):
    """Knows tokens. A factory that takes `Settings` and returns one can be plugged in."""

    async def verify(self, token: str) -> Grant | None:
        """Whom the token speaks for; None for what is no token of this kind. `AuthError` for one that is not valid,
        `StoreError` where that cannot be found out now."""
        ...


class JwtVerifier:
    """Tokens (RFC 7519) that an issuer signed for this gateway, by the public keys it publishes.

    The audience must be ours: a token that was made for another service is not taken, and none is ever passed on."""

    def __init__(self, issuer: str, audience: str, keys_url: str, *, owner_claim: str = "sub") -> None:
        self._issuer = issuer
        self._audience = audience
        self._keys_url = keys_url
        self._owner_claim = owner_claim
        self._keys: Any = None

    async def verify(self, token: str) -> Grant | None:
        """See `TokenVerifier.verify`."""
        if token.count(".") != 2:
            return None
        if len(token) > MAX_TOKEN_CHARS:
            raise AuthError(f"a bearer token has at most {MAX_TOKEN_CHARS:,} characters")
        return self._grant(await asyncio.to_thread(self._claims, token))

    def _claims(self, token: str) -> Mapping[str, Any]:
        import jwt  # noqa: PLC0415 - brings 9 MB of cryptography, which only those who use tokens need

        if self._keys is None:
            self._keys = jwt.PyJWKClient(self._keys_url, timeout=FETCH_SECONDS, lifespan=300)
        try:
            key = self._keys.get_signing_key_from_jwt(token)
            claims: Mapping[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=list(ALGORITHMS),
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "aud", "iss"]},
            )
        except jwt.PyJWKClientConnectionError as error:
            raise StoreError(
                f"the keys of the token's issuer cannot be fetched from {self._keys_url}; try again", agent_id="tokens"
            ) from error
        except (jwt.PyJWTError, ValueError) as error:
            raise AuthError(f"the bearer token is not valid here: {str(error)[:200]}") from error
        return claims

    def _grant(self, claims: Mapping[str, Any]) -> Grant:
        owner = claims.get(self._owner_claim)
        if not isinstance(owner, str) or not owner.strip() or owner == LOCAL_OWNER or len(owner) > 200:
            raise AuthError(f"the bearer token names nobody in its claim {self._owner_claim!r}")
        said = claims.get("scope", claims.get("scp"))
        words = said.split() if isinstance(said, str) else said if isinstance(said, list) else []
        scopes = frozenset(scope for scope in SCOPES if scope in words or f"stepgate:{scope}" in words)
        name = claims.get("name") or claims.get("preferred_username") or owner
        return Grant(owner, str(name)[:200], scopes or _UNSCOPED, expires_at=float(claims["exp"]) + LEEWAY_SECONDS)


def verifier_of(settings: Settings) -> TokenVerifier | None:
    """The verifier that is set; None without any. `ConfigError` for one that cannot be had."""
    if settings.token_verifier is not None:
        if settings.jwt_issuer is not None:
            raise ConfigError("AGENT_TOKEN_VERIFIER: unset it, or AGENT_JWT_ISSUER")
        return _plugged_in(settings.token_verifier, settings)
    if settings.jwt_issuer is None:
        return None
    if settings.jwt_audience is None:
        raise ConfigError("AGENT_JWT_AUDIENCE: name whom the tokens must be for; a token for anybody is for nobody")
    keys_url = settings.jwt_keys_url or f"{settings.jwt_issuer.rstrip('/')}/.well-known/jwks.json"
    return JwtVerifier(settings.jwt_issuer, settings.jwt_audience, keys_url, owner_claim=settings.jwt_owner_claim)


def is_over(grant: Grant, clock: Callable[[], float] = time.time) -> bool:
    """Whether what was granted has ended since."""
    return grant.expires_at is not None and grant.expires_at <= clock()


def _plugged_in(name: str, settings: Settings) -> TokenVerifier:
    module, _, attribute = name.partition(":")
    try:
        made: TokenVerifier = getattr(importlib.import_module(module), attribute)(settings)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(
            f"AGENT_TOKEN_VERIFIER: {name!r} gives no verifier (package.module:factory): {error}"
        ) from error
    return made
