"""The set to practise on: prompts and the engine are developed on it (docs/evaluation.md)."""
