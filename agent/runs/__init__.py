"""Runs: starting, executing, following and recovering them; tasks and sessions."""
