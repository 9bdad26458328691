"""On whose behalf schedules run: the API key that made them, as it is at each tick."""

from dataclasses import dataclass

from agent.core.errors import AuthError
from agent.core.principal import Principal
from agent.storage.api_keys import KeyStore
from gateway.access.authentication import Authenticator, Caller
from gateway.features.schedules.engine.schedule_store import Schedule


@dataclass(frozen=True, slots=True)
class ScheduleCallers:
    """Authorizes ticks as the doors authorize requests, from the stored key."""

    keys: KeyStore
    authenticator: Authenticator

    async def authorize(self, schedule: Schedule) -> Principal:
        """Identifies the principal of a schedule's run and counts the run against its key's requests a minute.

        A schedule without a key was made on this machine. Raises `AuthError` if the key was deleted or revoked, has
        expired or belongs to another owner, `ScopeError` if it may not start runs, `RateLimitError`.
        """
        if schedule.key_id is None:
            return Principal(schedule.owner)
        key = await self.keys.get_valid(schedule.key_id)
        if key.owner != schedule.owner:
            raise AuthError(f"the API key {key.id} belongs to another owner")
        caller = Caller(key)
        caller.require_scope("agent")
        (await self.authenticator.count_request(caller)).raise_if_refused()
        return caller.principal
