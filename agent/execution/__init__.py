"""From a plan to results: the stages of a run, the loop that drives them, and who carries out and judges a step."""
