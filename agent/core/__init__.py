"""The vocabulary and the few things everybody needs: settings, models, events, errors, journal, model client."""
