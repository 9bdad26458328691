"""Which entries of a list a question is about, by a real model: `python -m tests.bench.list_questions`."""
