"""What the feature `protocols` has built, for itself and for features that need it."""

from typing import TYPE_CHECKING

from gateway.feature import Part

if TYPE_CHECKING:
    from gateway.features.protocols.engine import TaskService

get_tasks: Part["TaskService"] = Part("protocols", is_services=True)
"""The stored tasks."""
