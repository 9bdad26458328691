"""Model access: the `ModelClient` port, its adapters, and retries."""
