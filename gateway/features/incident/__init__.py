"""The incident desk: tools that answer from issues, logs and runbooks."""
