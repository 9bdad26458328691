"""Further protocols to the same runs: Responses, Conversations, AG-UI, A2A, older completions, `/query`, `/tasks`."""
