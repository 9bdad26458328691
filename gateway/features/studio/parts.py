"""What the feature `studio` has built, for its own doors and commands and for features that need it."""

from typing import TYPE_CHECKING

from gateway.feature import Parts

if TYPE_CHECKING:
    from gateway.features.studio.bootstrap_studio import Studio


def get_studio(parts: Parts) -> "Studio":
    """What people and programs make in a running gateway. Raises `ConfigError` if the feature is off."""
    studio: Studio = parts.get_part("studio")
    return studio
