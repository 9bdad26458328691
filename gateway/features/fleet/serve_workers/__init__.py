"""`stepgate serve --workers N`: the parent of the processes, what a process knows of the others, and MCP sessions."""
