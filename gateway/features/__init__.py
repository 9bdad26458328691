"""Features: what the gateway offers beyond its kernel, each complete in one folder."""
