"""Personal data is removed from a stream as from the whole text, however it is cut."""

import random

import pytest

from agent.policy.guardrails.pii import find_personal_data
from agent.policy.guardrails.spans import replace_spans
from agent.policy.guardrails.stream import PersonalDataStream
from agent.policy.redaction.answers import remove_personal_data

TEXTS = (
    "Ask bob.lind@example.org or call +46 70 123 45 67, or mail ann at example dot com today.",
    "His IBAN is GB29 NWBK 6016 1331 9268 19 and the card 4111 1111 1111 1111 expires. Of 12 items 1 234 567 are left.",
    "Look at the house at noon. 19811218-9876 belongs to him. Server 8.8.8.8 answers. Tel: 040-123 45 67.",
    "In 2024 we had 25 days of holiday; 17.5 * 240 = 4200. See [1] and [2].",
    "Write to maria.svensson (at) firma (dot) se please, thanks a lot.",
)


@pytest.mark.row("S003-02")
@pytest.mark.parametrize("text", TEXTS)
def test_a_stream_gives_what_the_whole_text_gives(text: str) -> None:
    spans = [(span.start, span.end, f"[removed: {kind}]") for kind, span in find_personal_data(text)]
    for seed in range(100):
        dice, stream, parts, at = random.Random(seed), PersonalDataStream(""), [], 0
        while at < len(text):
            size = dice.choice([1, 1, 2, 3, 5, 8, 20])
            parts.append(stream.feed(text[at : at + size]))
            at += size
        assert "".join([*parts, stream.end()]) == replace_spans(text, spans), seed


def test_what_is_the_callers_own_stays() -> None:
    stream = PersonalDataStream("my address is ann@example.org")
    assert stream.feed("I wrote to ann@example.org and bob@example.org. ") + stream.end() == (
        "I wrote to ann@example.org and [removed: EMAIL]. "
    )


def test_plain_words_wait_for_one_more_word_at_most() -> None:
    stream = PersonalDataStream("")
    shown = ""
    for word in ["The", "quick", "brown", "fox", "has", "25", "dogs", "and", "sleeps", "all", "day"]:
        shown += stream.feed(f" {word}")
    assert shown.rstrip() == " The quick brown fox has 25 dogs and sleeps all"


@pytest.mark.parametrize(
    "text",
    [
        "Ask ann.lee (AT) example.org now.",
        "Ask ann AT example DOT com now.",
        "Ask ann\uff20example.com now.",
        "Ask beef:cafe:beef:cafe:beef:cafe:beef:cafe now.",
        "Call \u00b2\u00b2\u00b2-555-0199 now: (\u00b2\u00b9\u00b2) \u00b3\u00b2\u00b3-\u00b2\u00b3\u00b2\u00b9",
    ],
)
def test_spellings_that_the_detector_knows_are_held_in_a_stream(text: str) -> None:
    whole = remove_personal_data(text, "")
    for size in (1, 3, 7):
        stream = PersonalDataStream("")
        pieces = [stream.feed(text[at : at + size]) for at in range(0, len(text), size)]
        assert "".join(pieces) + stream.end() == whole
        stream = PersonalDataStream("")
        assert stream.feed(text[:size]) + stream.end(text[size:]) == whole
