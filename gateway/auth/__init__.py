"""Authentication: API keys and external bearer tokens."""
