"""What is checked of a request before a door sees it: who sends it (API keys, external bearer tokens), from which web
page (Host, Origin, type of body: a page must not use the gateway of the person who looks at it), and whether it was
sent before (`Idempotency-Key`).

Begin with `authentication.py` `Authenticator`, `Caller`, `dependencies.py` `CurrentCaller`, `require_scope`,
`origin_check.py` `OriginCheckMiddleware` and `idempotency.py` `start_once`.
"""
