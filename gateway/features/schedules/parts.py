"""What the feature `schedules` has built, for its own doors, tools and commands."""

from typing import TYPE_CHECKING

from gateway.feature import Parts

if TYPE_CHECKING:
    from gateway.features.schedules.bootstrap_schedules import Schedules
    from gateway.features.schedules.engine.webhooks.sender import WebhookSender


def get_webhooks(parts: Parts) -> "WebhookSender":
    """The sender of webhooks. Raises `ConfigError` if the feature is off."""
    webhooks: WebhookSender = parts.get_part("schedules")
    return webhooks


def get_schedules(parts: Parts) -> "Schedules":
    """The schedules. Raises `ConfigError` if the feature is off."""
    schedules: Schedules = parts.get_services("schedules")
    return schedules
