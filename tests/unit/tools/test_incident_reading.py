"""The tools that read a report: what they find, and that no text is too long for them."""

import asyncio
from datetime import MAXYEAR, UTC, datetime, timedelta
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools import ToolContext, TypedTool
from gateway.features.incident.engine.text import split_into_sentences
from gateway.features.incident.tools.actions import ActionItem, ExtractActionItemsTool, extract_action_items
from gateway.features.incident.tools.deadlines import ExtractDeadlinesTool, extract_deadlines
from gateway.features.incident.tools.entities import ExtractEntitiesTool, extract_entities
from gateway.features.incident.tools.knowledge import compute_overlap
from gateway.features.incident.tools.priority import ClassifyPriorityTool, classify
from gateway.features.incident.tools.summary import SummarizeTool, summarize

CONTEXT = ToolContext(run_id="run_1", owner="somebody")
WEDNESDAY = datetime(2026, 11, 4, 10, 0, tzinfo=UTC)
FRIDAY = datetime(2026, 11, 6, tzinfo=UTC)
PROMPT = "P1 incident: user profile picture errors causing latency and failures."


def named(text: str) -> list[tuple[str, str]]:
    return [(entity.type, entity.text) for entity in extract_entities(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (PROMPT, [("severity", "P1"), ("symptom", "errors"), ("symptom", "latency"), ("symptom", "failures")]),
        ("see MED-101 and INC0010042", [("ticket", "MED-101"), ("ticket", "INC0010042")]),
        ("profile-media-api calls orders-db", [("service", "profile-media-api"), ("service", "orders-db")]),
        ("HTTP 503 from 10.0.0.7", [("error", "HTTP 503"), ("ip", "10.0.0.7")]),
        ("a ConnectionError at 17:05 UTC", [("error", "ConnectionError"), ("date", "17:05 UTC")]),
        ("write to ops@example.org", [("email", "ops@example.org")]),
        ("release v4.2.1 on 2026-11-04", [("version", "v4.2.1"), ("date", "2026-11-04")]),
        ("31 percent of reads", [("measure", "31 percent")]),
        ("we asked Maria Lind about it", [("name", "Maria Lind")]),
        (
            "Anna Berg asked Tom Ek. Maria Lind answered.",
            [("name", "Anna Berg"), ("name", "Tom Ek"), ("name", "Maria Lind")],
        ),
        ("When Anna Berg calls", [("name", "Anna Berg")]),
        ("ping db-01.eu.example.com:5432", [("host", "db-01.eu.example.com:5432")]),
        ("see notes.txt, com.example.Main and app.py", []),
        ("in UTF-8 and by ISO-8601", []),
        ("several things", []),
        ("", []),
    ],
)
def test_entities_are_found_by_their_form(text: str, found: list[tuple[str, str]]) -> None:
    assert named(text) == found


def test_an_entity_is_told_once_with_its_count_and_first_place() -> None:
    (entity,) = extract_entities("Latency, latency and LATENCY")
    assert (entity.text, entity.count, entity.start) == ("Latency", 3, 0)


@pytest.mark.parametrize(
    ("text", "given", "level"),
    [
        (PROMPT, {}, "critical"),
        (PROMPT, {"priority": "Major", "severity": "SEV2"}, "high"),
        (PROMPT, {"priority": "4 - Low"}, "low"),
        ("all is well", {"priority": "Minor", "severity": "SEV1"}, "critical"),
        ("Severity: 3, pictures are grey", {}, "medium"),
        ("The whole site: production is down for all customers", {}, "critical"),
        ("checkout is failing for many users", {}, "high"),
        ("sometimes a page is slow", {}, "medium"),
        ("There is a typo on the page", {}, "low"),
        ("There is no outage, only a typo", {}, "low"),
        ("we met on Tuesday", {}, "medium"),
        ("", {}, "medium"),
    ],
)
def test_priority(text: str, given: dict[str, str], level: str) -> None:
    found, reasons = classify(text, given)
    assert found == level
    assert reasons
    assert all(reasons)


def test_what_is_given_counts_before_what_is_written_and_both_are_told() -> None:
    level, reasons = classify(PROMPT, {"severity": "SEV3"})
    assert level == "medium"
    assert reasons == ["the severity is SEV3: medium", "the text says P1 (critical), but the given value counts"]


def test_a_scale_nobody_knows_is_told_and_does_not_count() -> None:
    level, reasons = classify("checkout is failing", {"priority": "purple"})
    assert level == "high"
    assert "the priority 'purple' belongs to no known scale" in reasons


LONG = (
    "Good morning everybody. At 18:05 UTC profile-media-api began to answer with errors. We had coffee. "
    "The cause was a purge of media-cdn in the busiest hour. The weather was fine that day, they say. "
    "Latency of all pages rose to 4.8 seconds for members. Somebody brought cake to the office too. "
    "The purge emptied the cache, so that every request for a picture reached the object store."
)


@pytest.mark.parametrize("day", ["Monday's", "Mondays'", "Mondays", "Monday"])
def test_a_day_with_an_ending_is_no_name(day: str) -> None:
    found = named(f"Please draft the agenda for {day} meeting with Maria Lopez; it is long.")
    assert [name for kind, name in found if kind == "name"] == ["Maria Lopez"]
    assert ("name", "Maria Lopez") in named(f"It was planned with Maria Lopez {day} for all of us here.")


def test_a_summary_is_made_of_sentences_of_the_text_in_their_order() -> None:
    summary = summarize(LONG, 40)
    sentences = [sentence.text for sentence in split_into_sentences(LONG)]
    chosen = [sentence.text for sentence in split_into_sentences(summary)]
    assert len(summary.split()) <= 40
    assert [sentence for sentence in sentences if sentence in chosen] == chosen
    assert any("profile-media-api" in sentence for sentence in chosen)
    assert not any("coffee" in sentence or "weather" in sentence for sentence in chosen)


def test_a_short_text_is_its_own_summary() -> None:
    assert summarize(PROMPT, 80) == PROMPT


def test_a_summary_names_at_least_half_of_what_a_longer_report_names() -> None:
    filler = " ".join(f"Somebody said thing number {number} in passing." for number in range(60))
    report = f"{LONG} {filler} MED-101 and INC0010042 describe the same errors at profile-media-api."
    names = {entity.text.casefold() for entity in extract_entities(report)}
    said = summarize(report, 80).casefold()
    assert 2 * sum(name in said for name in names) >= len(names)


@given(st.text(max_size=3_000), st.integers(5, 60))
def test_no_summary_is_longer_than_asked(text: str, max_words: int) -> None:
    assert len(summarize(text, max_words).split()) <= max_words


@pytest.mark.parametrize(
    ("text", "words", "due"),
    [
        ("Fix it by Friday 5pm.", "by Friday 5pm", datetime(2026, 11, 6, 17, 0, tzinfo=UTC)),
        ("It is due within 4 hours", "within 4 hours", datetime(2026, 11, 4, 14, 0, tzinfo=UTC)),
        ("due 12 November 2026", "due 12 November 2026", datetime(2026, 11, 12, 23, 59, tzinfo=UTC)),
        ("by 2026-11-09 14:00", "by 2026-11-09 14:00", datetime(2026, 11, 9, 14, 0, tzinfo=UTC)),
        ("no later than tomorrow", "no later than tomorrow", datetime(2026, 11, 5, 23, 59, tzinfo=UTC)),
        ("in two business days", "in two business days", datetime(2026, 11, 6, 10, 0, tzinfo=UTC)),
        ("in 3 working days", "in 3 working days", datetime(2026, 11, 9, 10, 0, tzinfo=UTC)),
        ("by January 3rd", "by January 3rd", datetime(2027, 1, 3, 23, 59, tzinfo=UTC)),
        ("by 17:30", "by 17:30", datetime(2026, 11, 4, 17, 30, tzinfo=UTC)),
        ("before next Friday", "before next Friday", datetime(2026, 11, 13, 23, 59, tzinfo=UTC)),
        ("by the end of the month", "by the end of the month", datetime(2026, 11, 30, 23, 59, tzinfo=UTC)),
        ("by 31 February", "by 31 February", None),
        ("by Friday 3 May 2024", "by Friday 3 May 2024", datetime(2024, 5, 3, 23, 59, tzinfo=UTC)),
        ("due on Fri, 6 November 2026 at 5 pm", "due on Fri, 6 November 2026 at 5 pm", FRIDAY.replace(hour=17)),
        ("EOD tomorrow", "EOD tomorrow", datetime(2026, 11, 5, 23, 59, tzinfo=UTC)),
        ("by the end of the day on Friday", "by the end of the day on Friday", FRIDAY.replace(hour=23, minute=59)),
        ("by tomorrow at 17:00", "by tomorrow at 17:00", datetime(2026, 11, 5, 17, 0, tzinfo=UTC)),
        ("by Friday at noon", "by Friday at noon", FRIDAY.replace(hour=12)),
        ("by noon on Friday", "by noon on Friday", FRIDAY.replace(hour=12)),
        ("by 17:00 on 3 May 2027", "by 17:00 on 3 May 2027", datetime(2027, 5, 3, 17, 0, tzinfo=UTC)),
        ("within 99999 months", "within 99999 months", None),
        ("by 17:30 UTC", "by 17:30 UTC", datetime(2026, 11, 4, 17, 30, tzinfo=UTC)),
        ("by 5pm EST", "by 5pm EST", datetime(2026, 11, 4, 22, 0, tzinfo=UTC)),
        ("by Friday 9am CET", "by Friday 9am CET", datetime(2026, 11, 6, 8, 0, tzinfo=UTC)),
        ("by 2026-11-09T14:00:00Z", "by 2026-11-09T14:00:00Z", datetime(2026, 11, 9, 14, 0, tzinfo=UTC)),
        ("until June 2027", "until June 2027", datetime(2027, 6, 30, 23, 59, tzinfo=UTC)),
        ("by the end of February", "by the end of February", datetime(2027, 2, 28, 23, 59, tzinfo=UTC)),
        ("due in November", "due in November", datetime(2026, 11, 30, 23, 59, tzinfo=UTC)),
        ("before December", "before December", datetime(2026, 11, 30, 23, 59, tzinfo=UTC)),
        ("by 15:00 Zoe wants it", "by 15:00", datetime(2026, 11, 4, 15, 0, tzinfo=UTC)),
    ],
)
def test_deadlines(text: str, words: str, due: datetime | None) -> None:
    (deadline,) = extract_deadlines(text, WEDNESDAY)
    assert (deadline.text, deadline.due) == (words, due)


def test_a_time_is_one_of_the_day_that_its_sentence_names() -> None:
    text = "Send it by Friday 3 May 2024, at the latest before noon. The rest by 15:00, the review by Friday."
    assert [(one.text, one.due) for one in extract_deadlines(text, WEDNESDAY)] == [
        ("by Friday 3 May 2024", datetime(2024, 5, 3, 23, 59, tzinfo=UTC)),
        ("before noon", datetime(2024, 5, 3, 12, 0, tzinfo=UTC)),
        ("by 15:00", WEDNESDAY.replace(hour=15)),
        ("by Friday", FRIDAY.replace(hour=23, minute=59)),
    ]


@pytest.mark.parametrize(
    ("text", "words", "due"),
    [
        ("Meet on Friday at 10:00, and send the invoice by noon.", "by noon", WEDNESDAY.replace(hour=12)),
        ("Ship before Friday or by 20:00 today.", "by 20:00 today", WEDNESDAY.replace(hour=20)),
        (
            "Draft it on Friday and send the rest by 17:00 tomorrow.",
            "by 17:00 tomorrow",
            WEDNESDAY.replace(day=5, hour=17),
        ),
        ("By Friday, no later than 17:00.", "no later than 17:00", FRIDAY.replace(hour=17)),
        ("The report from 3 March is due by Friday.", "due by Friday", FRIDAY.replace(hour=23, minute=59)),
        ("The answer is due on Friday.", "due on Friday", FRIDAY.replace(hour=23, minute=59)),
        ("The filter must be changed on Friday.", "on Friday", FRIDAY.replace(hour=23, minute=59)),
        ("Answer at the latest Friday.", "at the latest Friday", FRIDAY.replace(hour=23, minute=59)),
        ("Send it by the 15th.", "by the 15th", WEDNESDAY.replace(day=15, hour=23, minute=59)),
        ("Send it by the 3rd.", "by the 3rd", WEDNESDAY.replace(month=12, day=3, hour=23, minute=59)),
        ("Answer within 2-3 business days.", "within 2-3 business days", WEDNESDAY.replace(day=9)),
        ("Pay 15 days after delivery.", "15 days after delivery", None),
        ("Pay within 30 days of the invoice.", "within 30 days of the invoice", None),
        ("Zahlbar 14 Tage nach Lieferung.", "14 Tage nach Lieferung", None),
        ("The outage began on 2026-11-01 and is due by Friday.", "due by Friday", FRIDAY.replace(hour=23, minute=59)),
    ],
)
def test_a_date_belongs_to_its_own_phrase(text: str, words: str, due: datetime | None) -> None:
    assert (words, due) == [(one.text, one.due) for one in extract_deadlines(text, WEDNESDAY)][-1]
    assert not any("March" in one.text for one in extract_deadlines(text, WEDNESDAY)), "it tells which report is meant"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("On Monday the api failed. Friday Night was bad. In March we met Anna Berg on Tuesday.", ["Anna Berg"]),
        ("We met Monday with Karl Lind, and December Sales fell.", ["Karl Lind"]),
        ("Am Montag kam Anna Berg, im Mai auch Eva Lang.", ["Anna Berg", "Eva Lang"]),
        ("We met Mon and Tue with Sam, then Thu. Closed on Sat, Sun and Wed.", ["Sam"]),
        ("Fri: Anna Berg. Mi kam Karl Lind.", ["Anna Berg", "Karl Lind"]),
        ("We asked April Jones, May Smith and August Strand.", ["April Jones", "May Smith", "August Strand"]),
    ],
)
def test_days_and_months_are_no_names(text: str, names: list[str]) -> None:
    assert [found for kind, found in named(text) if kind == "name"] == names


@pytest.mark.parametrize(
    "text",
    [
        "It started on 3 March.", "by the way", "the outage happened on Monday", "", "by 7",
        "The report from 3 March is long.", "See the minutes of 12 May 2026.", "written by May Smith", "by may",
        "The review is on Monday.", "We have lunch on Friday.", "Server restarted on 30 November.",
        "The goods arrive on 3 December.", "It is due to rain, says the review on Monday.",
    ],
)  # fmt: skip
def test_what_is_no_deadline(text: str) -> None:
    assert extract_deadlines(text, WEDNESDAY) == []


@pytest.mark.parametrize("now", [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
def test_beyond_the_end_of_the_calendar_a_deadline_has_no_moment(now: datetime) -> None:
    for text in ("by next Friday", "within 4 weeks", "by the end of next month", "by 3 January", "in 2 business days"):
        [found] = extract_deadlines(text, now)
        if now.year == MAXYEAR:
            assert found.due is None, text
        else:
            assert found.due is not None, text
            assert found.due > now, text


async def test_deadlines_are_counted_from_the_clock_unless_a_time_is_given() -> None:
    tool = ExtractDeadlinesTool(lambda: WEDNESDAY)
    first = await tool.call({"text": "within 4 hours"}, CONTEXT)
    other = await tool.call({"text": "within 4 hours", "now": "2026-01-01T00:00:00"}, CONTEXT)
    assert "2026-11-04 14:00 UTC" in first.text
    assert "2026-01-01 04:00 UTC" in other.text


MINUTES = """Notes from the call:
- Maria will roll back release 4.2.1 by 15:00
- Please check the logs of media-cdn
- Action: restart the resizer (owner: Sam)
Errors rise every hour. The on-call engineer must page the database team within 15 minutes.
TODO: write the review. We think it is DNS. Restarting did not help.
- please check the logs of media-cdn
"""


def test_action_items_with_owner_and_time() -> None:
    assert extract_action_items(MINUTES) == [
        ActionItem(text="Maria will roll back release 4.2.1 by 15:00", owner="Maria", due="by 15:00"),
        ActionItem(text="Please check the logs of media-cdn"),
        ActionItem(text="restart the resizer (owner: Sam)", owner="Sam"),
        ActionItem(
            text="The on-call engineer must page the database team within 15 minutes",
            owner="The on-call engineer",
            due="within 15 minutes",
        ),
        ActionItem(text="write the review"),
    ]


@pytest.mark.row("S004-21")
@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("@bob update the status page ASAP.", ("@bob update the status page ASAP", "@bob", "ASAP")),
        ("We need Anna to rotate the keys until 2026-12-01.",
         ("We need Anna to rotate the keys until 2026-12-01", "Anna", "until 2026-12-01")),
        ("I'd like the media team to drain the queue today.",
         ("I'd like the media team to drain the queue today", "the media team", None)),
        ("Can Maria please restart the worker before noon?",
         ("Can Maria please restart the worker before noon?", "Maria", "before noon")),
        ("Could you send me the logs within 2 hours?", ("Could you send me the logs within 2 hours?", None,
         "within 2 hours")),
        ("Don't forget to renew the certificate.", ("Don't forget to renew the certificate", None, None)),
        ("Make sure to check the disk.", ("Make sure to check the disk", None, None)),
    ],
)  # fmt: skip
def test_other_ways_to_ask_for_something(text: str, item: tuple[str, str | None, str | None]) -> None:
    assert [(one.text, one.owner, one.due) for one in extract_action_items(text)] == [item]


@pytest.mark.parametrize(
    "text",
    [
        "@bob is on holiday.", "We need more disks.", "I'd like the colour of the page.",
        "Nobody forgot to pay.", "Due to the outage we met Anna.", "They wanted Sam to be there.",
    ],
)  # fmt: skip
def test_what_asks_for_nothing(text: str) -> None:
    assert extract_action_items(text) == []


def test_a_sentence_that_a_mail_has_wrapped_is_one() -> None:
    wrapped = "Turn on the flag for placeholders as soon as the latency of the pages is\nabove two seconds. Then wait."
    assert [sentence.text for sentence in split_into_sentences(wrapped)] == [
        "Turn on the flag for placeholders as soon as the latency of the pages is above two seconds.",
        "Then wait.",
    ]


def test_every_sentence_stands_in_the_text() -> None:
    assert all(sentence.raw in MINUTES for sentence in split_into_sentences(MINUTES))


TOOLS: list[TypedTool] = [  # type: ignore[type-arg]
    ExtractEntitiesTool(),
    ClassifyPriorityTool(),
    SummarizeTool(),
    ExtractDeadlinesTool(lambda: WEDNESDAY),
    ExtractActionItemsTool(),
]
PIECES = st.sampled_from(
    ["P1", "by Friday", "within 3 days", "12 May", "MED-1", "a-api", "error", ". ", "\n", "- ", "Please", "\x00",
     "\u202e", "9999-99-99", "TODO:", "Ab ", "é", "日本", "[", "{{", "1.", "(", "'"]
)  # fmt: skip


@settings(max_examples=60)
@given(st.one_of(st.text(), st.lists(PIECES, max_size=60).map(" ".join), st.lists(PIECES, max_size=60).map("".join)))
def test_no_text_is_too_much_for_any_tool(text: str) -> None:
    for tool in TOOLS:
        result = asyncio.run(tool.call({"text": text}, CONTEXT))
        assert isinstance(result.value, dict)
        assert isinstance(result.text, str)


@pytest.mark.parametrize(
    "piece",
    ["a", "P1 ", ".", "by ", "Ab ", "1", "1.", "\n", "due by ", "a-", "- ", "please ", "not error ", "W. ", "the A ",
     "within 1 ", "owner: ", "x@", "http://", "word number one here. ", "   ", "Fix it by Friday. ", "Ab: ", "A, "],
)  # fmt: skip
def test_a_text_of_200_000_characters_takes_seconds_at_most(piece: str) -> None:
    text = (piece * (200_000 // len(piece) + 1))[:200_000]
    started = process_time()
    for tool in TOOLS:
        asyncio.run(tool.call({"text": text}, CONTEXT))
    assert process_time() - started < 2


def test_a_due_moment_is_never_before_the_text_for_durations() -> None:
    for count in range(1, 50):
        (deadline,) = extract_deadlines(f"within {count} minutes", WEDNESDAY)
        assert deadline.due == WEDNESDAY + timedelta(minutes=count)


@pytest.mark.row("S004-37")
def test_the_overlap_of_query_and_passage_is_computed_by_hand() -> None:
    # 2 shared words; 3 different words in the query, 4 in the passage: 2 / sqrt(3 * 4).
    assert compute_overlap("Profile picture errors", "errors of picture uploads") == 0.5774
    assert compute_overlap("errors errors", "Errors") == 1.0
    assert compute_overlap("errors", "uploads") == compute_overlap("errors", "") == 0.0
