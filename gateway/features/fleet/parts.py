"""What the feature `fleet` has built, for its own doors and commands."""

from typing import TYPE_CHECKING

from gateway.feature import Parts

if TYPE_CHECKING:
    from gateway.features.fleet.bootstrap_queue import Queue


def get_queue(parts: Parts) -> "Queue | None":
    """The queue; None where runs are not shared. Raises `ConfigError` if the feature is off."""
    queue: Queue | None = parts.get_part("fleet")
    return queue
