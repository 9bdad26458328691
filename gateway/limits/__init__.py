"""Limits: rates, quotas, concurrent runs, HTTP sizes and deadlines."""
