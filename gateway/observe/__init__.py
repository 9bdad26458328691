"""What operators see: logs, metrics and traces. All but the logs derive from the runs' own events."""
