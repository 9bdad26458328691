"""What the incident desk knows without a tool: phrases of time, sentences of reports, kinds of sources."""
