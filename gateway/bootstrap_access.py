"""The callers' part of the composition root: who may call, how much they may use, and what they have used."""

from dataclasses import dataclass

from agent.core.settings import Settings
from agent.runs.usage_recorder import UsageRecorder
from agent.storage.key_budgets import KeyBudgets
from agent.storage.usage import UsageLedger
from gateway.access.authentication import Authenticator, is_key_required
from gateway.access.external_tokens import build_token_verifier
from gateway.access.quota_reservations import KeyQuotas
from gateway.access.rate_limiter import FallbackRateLimiter, LocalRateLimiter, RateLimiter
from gateway.access.run_concurrency import MeteredRunConcurrency
from gateway.bootstrap_context import BuildContext


@dataclass(frozen=True, slots=True)
class Access:
    """The callers and their limits."""

    authenticator: Authenticator
    quotas: KeyQuotas
    run_concurrency: MeteredRunConcurrency
    usage: UsageRecorder


async def build_access(context: BuildContext) -> Access:
    """Provides the callers and their limits, and records usage until the end. Raises `ConfigError`."""
    settings, keys = context.settings, context.keys
    rate_limiter = _build_rate_limiter(settings)
    context.stack.push_async_callback(rate_limiter.aclose)
    quotas = KeyQuotas(keys, KeyBudgets(keys, context.statements, context.store.clock), rate_limiter=rate_limiter)
    usage = UsageRecorder(UsageLedger(context.statements, context.store.clock))
    await context.stack.enter_async_context(usage.run(catches_up=context.recover))
    authenticator = Authenticator(
        keys,
        requires_key=is_key_required(settings),
        max_streams=settings.max_open_streams,
        token_verifier=build_token_verifier(settings),
        token_rates=quotas.token_rates,
        rate_limiter=rate_limiter,
    )
    return Access(authenticator, quotas, MeteredRunConcurrency(rate_limiter), usage)


def _build_rate_limiter(settings: Settings) -> RateLimiter:
    """The rate limiter: shared through Redis if configured, else for this process."""
    if settings.redis_url is None:
        return LocalRateLimiter()
    from gateway.access.rate_limiter_redis import RedisRateLimiter  # noqa: PLC0415 - 0.1 s of start-up time, needed only with Redis

    return FallbackRateLimiter(
        RedisRateLimiter(settings.redis_url.get_secret_value(), settings.redis_prefix), LocalRateLimiter()
    )
