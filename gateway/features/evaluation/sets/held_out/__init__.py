"""The held-out set: only measured. Nobody changes the gateway because of its failures (docs/evaluation.md)."""
