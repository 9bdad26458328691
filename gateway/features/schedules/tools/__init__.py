"""The tools over schedules."""

from gateway.features.schedules.tools.schedules import make_schedule_tools

__all__ = [
    "make_schedule_tools",
]
