"""What the feature `protocols` has built, for its own doors and for features that need it."""

from typing import TYPE_CHECKING

from gateway.feature import Parts

if TYPE_CHECKING:
    from gateway.features.protocols.engine.tasks import TaskService


def get_tasks(parts: Parts) -> "TaskService":
    """The stored tasks. Raises `ConfigError` if the feature is off."""
    tasks: TaskService = parts.get_services("protocols")
    return tasks
