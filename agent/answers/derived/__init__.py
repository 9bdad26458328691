"""Figures that follow from the evidence of an answer: sums, shares, rates, dates, and the tables that they come from.

`agent.answers.figures` asks `known_values`, and that the other modules.
"""
