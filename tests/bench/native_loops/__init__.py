"""`make eval-peers`: the tasks of `stepgate eval`, answered by other frameworks' own loops with the same tools."""
