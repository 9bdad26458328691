"""What the feature `fleet` has built, for itself and for features that need it."""

from typing import TYPE_CHECKING

from gateway.feature import Part

if TYPE_CHECKING:
    from gateway.features.fleet.bootstrap_queue import Queue

get_queue: Part["Queue | None"] = Part("fleet")
"""The queue; None where runs are not shared."""
