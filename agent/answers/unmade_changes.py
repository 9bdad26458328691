"""Says under an answer that nothing was changed where the request asked for it: small models report what they plan."""

from agent.answers.sentences import say


def add_unmade_changes(text: str, language: str) -> str:
    """The answer with the sentence, in `language` or else in English."""
    return f"{text}\n\n{say('unmade', language)}"
