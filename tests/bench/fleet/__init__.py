"""`make bench-fleet`: what several processes with AGENT_DISPATCH=queue do on one PostgreSQL (docs/scale.md)."""
