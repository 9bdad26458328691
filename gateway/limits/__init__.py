"""Limits: rates, quotas, concurrent runs, HTTP sizes and deadlines.

Begin with `rate_limiter.py` `RateLimiter`, `quota_reservations.py` `KeyQuotas`, `run_concurrency.py`
`MeteredRunConcurrency` and `http_limits.py` `BodyLimitMiddleware`.
"""
