"""Evaluation: tasks with a world of their own, graded by checks on the final state and the answer (docs/evaluation.md)."""
