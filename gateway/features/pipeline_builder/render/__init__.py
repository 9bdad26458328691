"""Its frames."""
