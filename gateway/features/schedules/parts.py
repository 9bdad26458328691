"""What the feature `schedules` has built, for itself and for features that need it."""

from typing import TYPE_CHECKING

from gateway.feature import Part

if TYPE_CHECKING:
    from gateway.features.schedules.bootstrap_schedules import Schedules
    from gateway.features.schedules.engine.webhooks import WebhookSender

get_webhooks: Part["WebhookSender"] = Part("schedules")
"""The sender of webhooks."""
get_schedules: Part["Schedules"] = Part("schedules", is_services=True)
"""The schedules."""
