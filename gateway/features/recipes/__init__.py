"""Runs that went well, saved as skills with parameters."""
