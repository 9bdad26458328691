"""`Idempotency-Key`: a repeated request gets the first answer."""
