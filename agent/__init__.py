"""The engine: plans, executes and supervises runs. It knows nothing of HTTP doors, FastAPI or MCP transport."""
