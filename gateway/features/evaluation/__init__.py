"""Evaluation: tasks with a world of their own, graded by the final state and the answer (docs/evaluation.md)."""
