"""A gateway that is killed again and again under load, judged by what its surroundings have seen of it."""
