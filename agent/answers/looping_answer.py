"""Says under an answer that the model only repeated itself from there on: the stream was ended."""

from agent.answers.sentences import say
from agent.text.repetition import find_loop

REASON = "the model repeated itself until its answer was cut; ask again in other words, or with another model"


def end_looping_answer(text: str, language: str, *, was_streamed: bool) -> str:
    """An answer whose end is a loop, with the sentence in `language` or else in English. Of one that nobody has read
    yet, the repetitions are left out."""
    written = text
    while not was_streamed and (start := find_loop(written)) >= 0:  # it looks at the end of a long text only
        written = written[:start].rstrip()
    return f"{written}\n\n{say('repeated', language)}"
