"""Answers: the completion step, the final answer, translation, figures, and answers without a model."""
