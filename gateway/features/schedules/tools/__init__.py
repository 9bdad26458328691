"""Its tools."""
