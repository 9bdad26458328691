"""Webhooks: the end of a run is posted to an address, signed, and repeated until it is accepted (docs/schedules.md)."""
