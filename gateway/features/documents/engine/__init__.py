"""The part without a web framework."""
