"""Its HTTP routes."""
