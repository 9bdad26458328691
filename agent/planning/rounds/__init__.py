"""Planning in rounds: a batch of calls, a question or the answer at a time, with all results in view.

`planner.RoundPlanner` decides; `ruled_rounds.RULES` are the rounds that need no model.
"""
