"""`DirectModel`: a model for work outside of a run, such as making a tool by a door or a command."""

import asyncio
import secrets
from dataclasses import dataclass

from agent.core.errors import ModelError
from agent.core.models import JsonObject, Room, Tier, Usage
from agent.llm.faults import hide_endpoint_details
from agent.llm.port import ModelRequest, ResponseSchema
from agent.llm.tiers import ModelTiers
from agent.policy.redaction.secrets import make_secret_finder
from agent.run_context.token_estimates import estimate_call
from gateway.access.quota_reservations import KeyQuotas


@dataclass(frozen=True, slots=True)
class DirectModel:
    """Implements `ToolModel` with the models of a room. `key_id` pays; None pays nothing.

    `configured_secrets` are removed from what the model sees, `base_url` from the errors that callers with a key see.
    """

    models: ModelTiers
    room: Room
    quotas: KeyQuotas
    key_id: str | None
    configured_secrets: tuple[str, ...]
    base_url: str | None

    async def ask(
        self, messages: tuple[JsonObject, ...], *, tier: Tier = "fast", schema: ResponseSchema | None = None
    ) -> str:
        """See `ToolModel.ask`. Raises `ModelError`, `QuotaError` and `RateLimitError`."""
        model, *fallbacks = self.models.list_upstreams(tier, self.room)
        finder = make_secret_finder(self.configured_secrets, "known")
        request = ModelRequest(
            model=model,
            messages=tuple(clean for one in messages if isinstance(clean := finder.redact_tree(one), dict)),
            purpose="tool",
            response_schema=schema,
            temperature=0.0,
            max_tokens=self.models.max_tokens,
            fallbacks=tuple(fallbacks),
            timeout_s=self.models.timeout_s,
        )
        reserved = await self._reserve(request)
        usage = Usage()
        try:
            reply = await self.models.require().complete(request)
            usage = self.models.prices.add_cost(reply.model, reply.usage)
            reply = self.models.thoughts.split_reply(request, reply)
        except ModelError as error:
            if self.key_id is not None:
                error.message = hide_endpoint_details(error, self.base_url)
            error.message = finder.redact(error.message)
            raise
        finally:
            if self.key_id is not None:
                await asyncio.shield(self.quotas.record_usage(self.key_id, reserved, usage))
        return finder.redact(reply.text)

    async def _reserve(self, request: ModelRequest) -> str:
        if self.key_id is None:
            return ""
        expected = self.models.prices.add_cost(request.model, estimate_call(request))
        return await self.quotas.reserve(self.key_id, expected, run_id=f"direct/{secrets.token_hex(8)}", epoch=0)
