"""The guardrails' bench, and the script that trains their classifier."""
