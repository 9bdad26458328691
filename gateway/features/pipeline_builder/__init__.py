"""Builds document pipelines in conversations."""
