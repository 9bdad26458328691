"""Model access: the `ModelClient` port, its adapters, and retries.

Begin with `port.py` `ModelClient`, `ModelReply`, `tiers.py` `ModelTiers`, `profile.py` and `http.py` `HttpModelClient`.
"""
