"""What follows from the evidence of an answer: sums, shares, rates, dates, and the tables that they are taken from.

`agent.answers.figures` asks `known_values`, and that the other modules.
"""
