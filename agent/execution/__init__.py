"""Runs a plan: the stages of a run, the loop that drives them, and the execution and judging of steps."""
