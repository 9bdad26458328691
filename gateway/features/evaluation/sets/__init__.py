"""The sets of tasks, one package each (`task_sets.py`)."""
