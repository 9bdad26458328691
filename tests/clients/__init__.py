"""Real clients against a real gateway: `make check-clients`. Each client has an environment of its own."""
