"""Journeys through the web page in a real Chromium: `make check-page`."""
