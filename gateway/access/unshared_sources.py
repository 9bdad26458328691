"""Which of a caller's documents nobody else can read: for answers that may hold personal data (`guard_answer_pii`)."""

import time

from agent.core.models import LOCAL_OWNER
from agent.core.principal import Principal
from agent.core.settings import Settings
from agent.storage.api_keys import KeyStore
from gateway.access.authentication import can_others_call, is_key_required

OWNED_SOURCES = ("collections", "memories", "runs")
"""The sources of one owner. `files` are below the file roots, which every owner reads."""
CACHE_SECONDS = 2.0
"""How long counts of keys are reused, as verified keys are."""
MAX_CACHED_OWNERS = 1_000


class UnsharedSources:
    """Decides by the keys and settings of the gateway. Where it cannot be known who else reads, it is shared."""

    def __init__(self, keys: KeyStore, settings: Settings) -> None:
        self._keys = keys
        self._requires_key = is_key_required(settings)
        self._has_unknown_callers = not self._requires_key and can_others_call(settings)
        self._has_tokens = settings.jwt_issuer is not None or settings.token_verifier is not None
        # `sub` names one person (RFC 7519, 4.1.2); a verifier may take a claim that names a team.
        self._has_personal_tokens = settings.token_verifier is None
        self._counts: dict[str, tuple[float, tuple[int, int]]] = {}

    async def list_for(self, principal: Principal) -> tuple[str, ...]:
        """The sources that only the caller reads. Raises `StoreError`."""
        own, others = await self._count_keys(principal.owner)
        if not self._is_sole_holder(principal, own):
            return ()
        has_keyless_owner = principal.owner != LOCAL_OWNER and not self._requires_key
        is_alone = others == 0 and not self._has_tokens and not has_keyless_owner
        return (*OWNED_SOURCES, "files") if is_alone else OWNED_SOURCES

    def _is_sole_holder(self, principal: Principal, keys: int) -> bool:
        """Whether nobody but the caller acts as their owner. `keys` are the owner's valid keys."""
        if self._has_tokens and not self._has_personal_tokens:
            return False
        if principal.key_id is not None:
            return keys == 1 and (principal.owner != LOCAL_OWNER or self._requires_key)
        return keys == 0 and (principal.owner != LOCAL_OWNER or not self._has_unknown_callers)

    async def _count_keys(self, owner: str) -> tuple[int, int]:
        until, counts = self._counts.get(owner, (0.0, (0, 0)))
        if time.monotonic() >= until:
            counts = await self._keys.count_valid(owner)
            if len(self._counts) >= MAX_CACHED_OWNERS:
                self._counts.clear()
            self._counts[owner] = (time.monotonic() + CACHE_SECONDS, counts)
        return counts
