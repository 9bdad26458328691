"""Which doubts a person settles in words; whatever does not surely mean one settles none."""

from time import process_time

import pytest

from agent.builder.acceptance import numbered, settles
from agent.builder.changes import read_wishes
from agent.builder.records import Doubt, Origin
from agent.core.subagents import Severity

SCANS = "1 of 19 files tried hold scanned pages; they have to be read by OCR"
LOCKED = "2 of 19 files tried open with a password only"
LANGUAGES = "the documents are in several languages, by files: English (14), German (1)"
EMPTY = "2 of 19 files tried hold no text"
RULES = "made by rules, not by a model: no model is configured"
FAILED = "8 of 33 files failed (24 %)"


def doubt(number: int, severity: Severity, message: str, origin: Origin = "source_analyzer") -> Doubt:
    return Doubt(f"unc_{number}", "conv_1", origin, severity, message, {}, resolved=False, created=float(number))


DOUBTS = [
    doubt(1, "notable", SCANS),
    doubt(2, "notable", LOCKED),
    doubt(3, "notable", LANGUAGES),
    doubt(4, "info", EMPTY),
    doubt(5, "info", RULES),
    doubt(6, "blocking", FAILED, "pipeline_validator"),
    doubt(7, "info", RULES, "pipeline_validator"),
]


def settled(text: str) -> list[str]:
    """The ids of what a message settles, each word of which must be read."""
    found = settles(text, read_wishes(text).unread, DOUBTS)
    return [one.id for one in found.doubts] if not found.unread else []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("doubt 3 is fine", ["unc_3"]),
        ("#3 is fine with me.", ["unc_3"]),
        ("Doubts 1, 2 and 4 are OK, thanks!", ["unc_1", "unc_2", "unc_4"]),
        ("the third doubt is fine", ["unc_3"]),
        ("the last one is ok", ["unc_6"]),
        ("accept the first two", []),
        ("accept the first and the second", ["unc_1", "unc_2"]),
        ("never mind the languages", ["unc_3"]),
        ("I don't care about the different languages", ["unc_3"]),
        ("the password-protected ones, forget about them", []),
        ("forget about the password-protected files", ["unc_2"]),
        ("the encrypted files can be ignored", ["unc_2"]),
        ("Ok, we know about the scans", ["unc_1"]),
        ("the blocking one is acceptable", ["unc_6"]),
        ("resolve the blocking issue", ["unc_6"]),
        ("resolve it", ["unc_6"]),
        ("the failed files are expected", ["unc_6"]),
        ("doubt 5 is fine", ["unc_5", "unc_7"]),
        ("nobody needs the files without any text and the languages do not matter", []),
        ("nobody needs the empty files, and the languages don\u2019t matter", ["unc_3", "unc_4"]),
    ],
)
def test_a_doubt_is_meant_by_number_place_severity_or_matter(text: str, expected: list[str]) -> None:
    assert settled(text) == expected


@pytest.mark.parametrize("text", ["all doubts are fine", "everything is fine", "accept them all", "ignore the rest"])
def test_assent_to_everything_leaves_open_what_blocks(text: str) -> None:
    assert settled(text) == ["unc_1", "unc_2", "unc_3", "unc_4", "unc_5", "unc_7"]


@pytest.mark.parametrize(
    "text",
    [
        "that is fine", "it is fine", "fine", "yes", "accept it", "doubt 9 is fine", "the eighth one is fine",
        "doubt 6 is not fine", "don't accept 6", "do not ignore the blocking one", "is doubt 6 fine?", "only 6 is fine",
        "the blocking one isn't acceptable", "none of the blocking ones is fine", "if 6 is fine, apply it",
        "doubt 6 is fine unless it matters", "why is #6 ok", "resolve", "6", "#6", "accept", "the weather is fine",
        "nothing is fine", "the blocking issue is fine, isn't it", "never accept 6", "I can't accept 6",
        "ignore them", "ignore those",
    ],
)  # fmt: skip
def test_what_does_not_surely_settle_one_settles_none(text: str) -> None:
    assert settled(text) == []


TYPES = "5 of 5 files are of types that are not read: .xyz (5)"
NOT_LISTED = "the source was not listed to its end"
ITALIAN = "the documents are in several languages, by files: Italian (14), German (1)"


@pytest.mark.parametrize("message", [TYPES, NOT_LISTED, ITALIAN, FAILED, SCANS])
@pytest.mark.parametrize(
    "text",
    [
        "no, that is not fine", "not ok", "that's not ok", "it's not ok", "it is not ok", "no, it is not acceptable",
        "the types are not ok", "the files are not fine", "the listing isn't ok", "it is fine", "this is fine",
        "ignore it", "doubt 8 is fine", "8 is fine", "doubt 5 is not fine", "5 of these are fine", "1 of them is fine",
        "2 and not 1 are fine", "can you resolve the blocking issue", "could you settle doubt 1",
        "are the languages ok", "ok, are the scans fine", "is the type ok", "was the listing accepted",
    ],
)  # fmt: skip
def test_a_refusal_or_a_number_of_nothing_settles_no_doubt_that_has_its_words(message: str, text: str) -> None:
    alone = [doubt(1, "blocking", message)]
    found = settles(text, read_wishes(text).unread, alone)
    assert not found.doubts or found.unread


def test_what_may_mean_either_is_asked_about() -> None:
    found = settles("never mind the files tried", ("never mind the files tried",), DOUBTS)
    assert found.doubts == ()
    assert found.question.count("?") == 1
    assert f"#1 {SCANS[:80]}" in found.question
    assert f"#2 {LOCKED}" in found.question


def test_a_wish_beside_it_is_left_to_the_wishes() -> None:
    text = "use sentences, and doubt 3 is fine"
    reading = read_wishes(text)
    found = settles(text, reading.unread, DOUBTS)
    assert ([one.id for one in found.doubts], found.unread, len(reading.wishes)) == (["unc_3"], (), 1)
    half = settles("doubt 3 is fine and sort them", ("doubt 3 is fine", "sort them"), DOUBTS)
    assert half.unread == ("sort them",)


def test_numbers_stay_when_others_are_settled_and_one_said_twice_has_one() -> None:
    assert [number for number, _ in numbered(DOUBTS)] == [1, 2, 3, 4, 5, 6]
    first = Doubt("unc_1", "conv_1", "source_analyzer", "notable", SCANS, {}, resolved=True, created=1.0)
    assert [number for number, _ in numbered([first, *DOUBTS[1:]])] == [2, 3, 4, 5, 6]
    assert [one.id for one in settles("the first is fine", ("the first is fine",), [first, *DOUBTS[1:]]).doubts] == [
        "unc_2"
    ]


def test_it_is_read_in_no_time_whatever_it_is() -> None:
    started = process_time()
    for text in ("accept " * 140, "1 and " * 160, "the " * 250, "a is fine " * 99, "\u00e5" * 4000, "is ok " * 160):
        settles(text, (text,), DOUBTS)
    for text in ("!" * 50_000 + "x", " thanks" * 20_000 + "x", "ok " * 50_000, "1, " * 50_000 + "are fine"):
        settles(text, (text,), DOUBTS)
    assert process_time() - started < 10
