"""How much of a file's text its reader found. Shares no code and no parsing library with `agent.ingest.parsers`."""

from agent.ingest.coverage.measure import measure_coverage

__all__ = ["measure_coverage"]
