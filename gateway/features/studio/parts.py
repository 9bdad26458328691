"""The parts that the feature `studio` has built, for itself and for features that need it."""

from typing import TYPE_CHECKING

from gateway.feature import Part

if TYPE_CHECKING:
    from gateway.features.studio.bootstrap_studio import Studio

get_studio: Part["Studio"] = Part("studio")
"""The stores and services of the studio."""
