"""Schedules: requests and tasks that run at times given by cron, once a tick in a fleet (docs/schedules.md)."""
