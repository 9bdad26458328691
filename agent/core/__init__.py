"""The shared vocabulary: models, events, run state, trace, errors, settings."""
