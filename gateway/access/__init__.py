"""Checks of a request before a door sees it: who sends it (API keys, external bearer tokens), from which web
page (Host, Origin, type of body: a page must not use the gateway of the person who looks at it), whether it was sent
before (`Idempotency-Key`), and how much may be sent (rates, quotas, concurrent runs, HTTP sizes and deadlines).

Begin with `authentication.py` `Authenticator`, `Caller`, `dependencies.py` `CurrentCaller`, `require_scope`,
`origin_check.py` `OriginCheckMiddleware`, `idempotency.py` `start_once`, `rate_limiter.py` `RateLimiter`,
`quota_reservations.py` `KeyQuotas`, `run_concurrency.py` `MeteredRunConcurrency` and `http_limits.py`
`BodyLimitMiddleware`.
"""
