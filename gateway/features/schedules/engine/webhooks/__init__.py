"""Webhooks: the end of a run is posted to an address, signed, and repeated until it is accepted (docs/schedules.md)."""

from gateway.features.schedules.engine.webhooks.sender import WebhookSender

__all__ = [
    "WebhookSender",
]
