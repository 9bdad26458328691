"""The studio: people and programs make rooms, tools and prompts in a running gateway."""
