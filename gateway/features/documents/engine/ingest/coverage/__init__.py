"""Measures how much of a file's text its reader found. Shares no code and no parsing library with the parsers."""

from gateway.features.documents.engine.ingest.coverage.measure import NATIVE_MEASURES, measure_coverage

__all__ = ["NATIVE_MEASURES", "measure_coverage"]
