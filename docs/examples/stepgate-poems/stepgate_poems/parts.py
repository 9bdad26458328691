"""What the feature `poems` has built, typed, for its door, its tool and its command."""

from typing import TYPE_CHECKING

from gateway.feature import Part

if TYPE_CHECKING:
    from stepgate_poems.favourites import Favourites

get_poems: Part["Favourites"] = Part("poems")
"""The favourites, of the gateway or of the host while it is built."""
