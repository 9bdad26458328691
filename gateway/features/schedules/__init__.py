"""Runs at times given by cron, and posts about their ends."""
