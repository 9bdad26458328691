"""The development set: its results are looked at when the gateway and its prompts are changed."""
