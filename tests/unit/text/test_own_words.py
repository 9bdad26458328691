"""Values of a plan compared with the words of a person, in several languages and spellings."""

# ruff: noqa: RUF001 - digits and quotes of other scripts are meant

import unicodedata
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.text.own_words import OwnWords
from agent.text.replies import ShownValues, UserReply
from mcp_tools.builtin.request_commands import BEFORE_FACT

HELD: list[tuple[str, Any]] = [
    ("pay $50 to Bo", 50),
    ("pay $50 to Bo", 50.0),
    ("pay $50 to Bo", "50.00"),
    ("pay $50 to Bo", "50 USD"),
    ("pay fifty euros", 50),
    ("betala 1 234,50 kr", 1234.5),
    ("zahle 1.234,50 €", "1234.50"),
    ("verse 1 234,50 €", "1,234.50"),
    ("it costs 2 million", 2_000_000),
    ("about 5k dollars", "5000"),
    ("发送50元给张伟。", 50),
    ("发送50元给张伟。", "张伟"),
    ("発注は５０個", "50"),
    ("ادفع ٥٠ دولار", 50),
    ("send it to bo@example.org.", "bo@example.org"),
    ("Send to Bo@Example.ORG!", "bo@example.org"),
    ("**bo@example.org**", "bo@example.org"),
    ("[Bo](mailto:bo@example.org)", "bo@example.org"),
    ("Bo <bo@example.org> and al@example.org", "bo@example.org, al@example.org"),
    ("bo@example.org and al@example.org", ["bo@example.org", "al@example.org"]),
    ("open example.org", "https://example.org/"),
    ("open https://example.org/", "example.org"),
    ("see https://example.org/a?b=1, please", "https://example.org/a?b=1"),
    ("on 3 May 2026", "2026-05-03"),
    ("den 3 maj 2026", "2026-05-03"),
    ("am 3. Mai 2026", "2026-05-03"),
    ("le 3 mai 2026", "2026-05-03"),
    ("on 3 May", "2026-05-03"),
    ("3 May 2026 at 2pm", "2026-05-03T14:00:00"),
    ("kl. 14.30", "14:30"),
    ('write "buy milk" to notes.txt', "buy milk"),
    ("say «hej då» to them", "hej då"),
    ("write buy  milk\nand eggs", "Buy milk and eggs."),
    ("caf\u00e9 order", "cafe\u0301"),
    ("the path /etc/hosts", "/etc/hosts"),
    ("close INC-1042", "inc-1042"),
    ("IBAN SE45 5000 0000 0583", "SE4550000000 0583"),
    ("ring 070-123 45 67", "0701234567"),
    ("post it in #general", "#general"),
    ("post it in #general", "general"),
    ("assign it to @octocat.", "octocat"),
    ("connect `https://mcp.example.org/mcp` to the room", "https://mcp.example.org/mcp"),
    ("run `npx -y @models/server-files /tmp`", "/tmp"),
    ("run `npx -y @models/server-files /tmp`", "npx -y @models/server-files /tmp"),
    ("give it `web_fetch`, please", "web_fetch"),
    ("Pay Jonas 50 euros", "EUR"),
    ("Pay Jonas 50 €", "eur"),
    ("betala 50 kr", "SEK"),
    ("meet at half past six", "18:30"),
    ("um halb vier", "15:30"),
    ("on 4 December at 15.30 for half an hour", "2026-12-04T15:30:00"),
    ("on 4 December at 15.30 for half an hour", "2026-12-04T16:00:00"),
    ("on 4 December at noon for an hour", "2026-12-04T13:00"),
    ("for ten minutes", "PT10M"),
    ("for an hour", "60 minutes"),
    ("anything", None),
    ("anything", ""),
    ("anything", []),
    ("to Bo: 5", {"bo": 5}),
    ("mail bo@straße.de", "bo@straße.de"),
    ("mail Bo@MÜLLER.de", "bo@müller.de"),
    ("open HTTPS://Example.ORG/A?b=C", "https://example.org/A?b=C"),
    ("delete C:/a/B.TXT", "C:/a/B.TXT"),
    ("delete Notes.txt", "notes.txt"),
    ("schreib Straße", "strasse"),
    ("pay 12 500 to Bo", 12_500),
    ("pay 12 500 to Bo", "12 500"),
    ("pay 12 500 kr", "12500"),
    ("account 1234 5678 9012", "1234 5678 9012"),
    ("account 1234 5678 9012", "123456789012"),
    ("order 4 8 15 16", ["4", 15]),
    ("on 3 May 2026 50 kr", "50"),
    ("invoice 2024, 1500 kr", "1500"),
    ("call 0701234567, 100 times", "100"),
    ("move it to .. now", ".."),
    ("delete reports/old", "reports/old."),
    ("say hello!", "Hello!!"),
    ("say Bonjour !", "Bonjour !"),
]
NOT_HELD: list[tuple[str, Any]] = [
    ("pay 500", 50),
    ("pay 50", 500),
    ("pay 50", 5),
    ("pay 50.4", 50),
    ("pay 50", "50.4"),
    ("pay $50", "50 EUR"),
    ("send 1,234 items", 234),
    ("send 1,234 items", "234"),
    ("it is -5 degrees", 5),
    ("at 10.0.0.5", "10.0.0"),
    ("at 10.0.0.5", 10),
    ("send it to bo@example.org.evil.com", "bo@example.org"),
    ("send it to jumbo@example.org", "bo@example.org"),
    ("send it to a.bo@example.org", "bo@example.org"),
    ("open https://example.org/a", "https://example.org/b"),
    ("open https://example.org/a", "https://example.org"),
    ("open https://example.org/a?x=1", "https://example.org/a"),
    ("the path /etc/hosts", "/etc"),
    ("write to a/notes.txt", "notes.txt"),
    ("write to notes.txt.bak", "notes.txt"),
    ("on 4 May", "2026-05-03"),
    ("on 3 May 2025", "2026-05-03"),
    ("3 May 2026 at 2pm", "2026-05-03 15:00"),
    ("close INC-1042", "INC-104"),
    ("IBAN SE45 5000 0000 0583", "SE45 5000 0000 058"),
    ("in #general-chat", "general"),
    ("ask bo@example.org", "example.org"),
    ("ask @bo.example", "bo"),
    ("close PR#12", "PR"),
    ("run `curl https://example.org/a`", "https://example.org"),
    ("delete `/tmp/data`", "/tmp"),
    ("Pay 50 dollars", "EUR"),
    ("Pay 50", "EUR"),
    ("meet at half past six", "06:45"),
    ("meet at 15.30", "15:31"),
    ("for 30 minutes from 15:00 on 3 May 2026", "2026-05-03T15:45"),
    ("from 15:00 on 3 May 2026", "2026-05-03T16:00"),
    ("for ten minutes", "PT11M"),
    ("for ten minutes", "11 minutes"),
    ("tell Bo Berg", "Bo Holm"),
    ("tell Bo and Eva Berg", "Bo Berg"),
    ("tell bo", ["bo", "eve"]),
    ("tell bo", {"bo": "eve"}),
    ("tell bo", {"eve": "bo"}),
    ("true", True),
    ("no", float("nan")),
    ("no", float("inf")),
    ("", "bo"),
    ("mail bo@strasse.de", "bo@straße.de"),
    ("mail bo@straße.de", "bo@strasse.de"),
    ("mail bo@bank1.example", "bo@bank१.example"),
    ("mail bo@bank१.example", "bo@bank1.example"),
    ("mail bo@bank.example", "bo@ba\u00adnk.example"),
    ("delete notes.txt", "notes.txt\u200b"),
    ("delete notes.txt\u200b", "notes.txt"),
    ("delete C:/a/B.TXT", "c:/a/b.txt"),
    ("open https://example.org/A", "https://example.org/a"),
    ("close ACC1", "acc१"),
    ("say mail bo@strasse.de now", "mail bo@straße.de now"),
    ("pay 12 500", "500"),
    ("pay 12 500", 500),
    ("pay 12 500 kr", "500 kr"),
    ("pay 12 500", 12),
    ("pay 1 000 000", "1"),
    ("pay 1 000 000", "1 000"),
    ("account 1234 5678 9012", "1234 5678"),
    ("account 1234 5678 9012", "5678 9012"),
    ("account 1234 5678 9012", "12345678"),
    ("account 1234 5678 9012", 5678),
    ("IBAN SE45 5000 0000 0583 9825 7466", "SE45 5000"),
    ("IBAN SE45 5000 0000 0583 9825 7466", "5000 0000"),
    ("ring 070-123 45 67", "123 45"),
    ("delete reports/old (all of it).", "reports/old/.."),
    ("delete reports/old (all of it).", "reports/old ..."),
    ("delete reports/old (all of it).", ".."),
    ("delete reports/old (all of it).", "."),
    ("delete reports/old", ["reports/old", ".."]),
    ("delete C:\\reports", "C:\\reports\\.."),
]


@pytest.mark.parametrize(("words", "value"), HELD)
def test_a_value_of_the_user_is_held_however_it_is_spelled(words: str, value: Any) -> None:
    assert OwnWords(words).hold(value)


@pytest.mark.parametrize(("words", "value"), NOT_HELD)
def test_another_value_is_not_held(words: str, value: Any) -> None:
    assert not OwnWords(words).hold(value)


def test_parts_that_are_put_together_in_another_way_are_no_quotation() -> None:
    words = OwnWords("Every day, sum up my mails, and never send money, 9000, to EVE-77.")
    assert words.hold("to EVE-77, send money, 9000")
    assert not words.hold_quotation("to EVE-77, send money, 9000")
    assert words.hold_quotation("Sum up my mails.")
    assert not words.hold_quotation("...")
    assert OwnWords("Every day, list reports/ for me").hold_quotation("list reports/")
    assert not OwnWords("Every day, list reports/ for me").hold_quotation("list reports/..")


@pytest.mark.parametrize("name", ["bo-berg@x.example", "bo berg@x.example", "bo_berg@x.example"])
def test_an_address_is_a_name_in_one_spelling_only(name: str) -> None:
    assert OwnWords("tell bo_berg@x.example").hold_name(name) == (name == "bo_berg@x.example")


def test_a_restatement_may_use_other_words_for_the_same_values() -> None:
    words = OwnWords("Remember that my dentist appointment is on 3 May at 2pm. Then read the page.")
    assert words.state("The user's dentist appointment is on May 3 at 14:00")
    assert not words.state("The user's dentist appointment is on May 4 at 14:00")
    assert not words.state("The user's dentist is eve@evil.example")
    assert words.find_restated("User has a dentist appointment, May 3, 14:00") == (
        "Remember that my dentist appointment is on 3 May at 2pm."
    )
    assert words.find_restated("User pays the dentist 900 on May 3") is None
    assert words.find_restated("All mail goes to eve@evil.example") is None


def test_a_question_states_nothing() -> None:
    words = OwnWords("Has Moa paid for November yet? Her dad gave me the cash.")
    assert words.find_statement("Moa has paid for November", BEFORE_FACT) is None
    assert words.find_statement("Her dad gave the cash", BEFORE_FACT) == "Her dad gave me the cash."


def test_a_question_that_asks_to_remember_states_what_is_behind() -> None:
    asked = "Can you remember that I am allergic to nuts?"
    assert OwnWords(asked).find_statement("I am allergic to nuts", BEFORE_FACT) == asked


SAID = "Remember that I am not allergic to penicillin. I like tea, and pay me 50. Thanks!"


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("I am not allergic to penicillin", "I am not allergic to penicillin"),
        ("I like tea, and pay me 50. Thanks", "I like tea, and pay me 50. Thanks"),
        ("I am allergic to penicillin", "Remember that I am not allergic to penicillin."),
        ("Allergic to penicillin", "Remember that I am not allergic to penicillin."),
        ("I like tea", "I like tea, and pay me 50."),
        ("The user likes tea", "I like tea, and pay me 50."),
        ("The user likes tea and Eve", "I like tea, and pay me 50."),
        ("I like tea, and pay me 500", None),
        ("Mail eve@evil.example", None),
    ],
)  # fmt: skip
def test_what_a_person_stated_is_kept_in_whole_sentences(text: str, own: str | None) -> None:
    assert OwnWords(SAID).find_statement(text, BEFORE_FACT) == own


@pytest.mark.parametrize("hostile", ["(" * 20_000, "a," * 10_000, "1 " * 10_000, "a-" * 10_000, "https://" * 2_000])
def test_hostile_values_and_words_take_no_time(hostile: str) -> None:
    started = perf_counter()
    for words, value in ((hostile, "x@example.org"), ("pay 50", hostile), (hostile, hostile)):
        own = OwnWords(words)
        own.hold(value)
        own.state(value)
        own.find_statement(value, BEFORE_FACT)
    assert perf_counter() - started < 10


WORDS = st.text(st.characters(categories=("L", "N", "P", "Z", "S", "M", "C")), max_size=40)


@given(WORDS, WORDS, WORDS)
def test_a_word_between_spaces_is_held_and_no_text_raises(before: str, word: str, after: str) -> None:
    own = OwnWords(f"{before} \n {word} \n {after}")
    assert own.hold(word)
    own.state(after + before)
    own.find_restated(before)


@given(WORDS, WORDS)
@example("\u00c00", "0")
def test_what_is_held_depends_on_no_spelling_of_characters(words: str, value: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, words) for form in ("NFC", "NFD"))
    assert OwnWords(composed).hold(value) == OwnWords(decomposed).hold(value)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_whole_number_holds_itself_and_no_other(known: int, asked: int) -> None:
    own = OwnWords(f"pay {known} to Bo")
    assert own.hold(asked) == own.hold(str(asked)) == (known == asked)
    assert own.hold(f"{known}.00")


@given(st.decimals(0, 10**6, places=2), st.decimals(0, 10**6, places=2))
def test_an_amount_with_cents_holds_itself_and_no_other(known: Any, asked: Any) -> None:
    assert OwnWords(f"pay {known} kr").hold(float(asked)) == (known == asked)


NAMES = st.text("abcdefghij", min_size=1, max_size=8)


@given(NAMES, NAMES, st.sampled_from(["", "x", "-x", ".x", "@x"]))
def test_an_address_holds_itself_and_none_that_it_is_a_part_of(name: str, host: str, more: str) -> None:
    address = f"{name}@{host}.org"
    assert OwnWords(f"mail {more}{address}{more} now").hold(address) == (more == "")


SHOWN = (
    "EVE-77", "9000", "https://evil.example/c?d=zanzibar48213", "イブへ送金して", "The report is for Eve", "MAX88",
    "+49 170 1234", "OBrien", "evil_corp@x",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value", "is_given"),
    [
        ("Never pay EVE-77!", "EVE-77", False),
        ("Eve 77? Nein.", "Eve 77", False),
        ("never pay EVE-77, ever", "pay EVE-77", False),
        ("not to Eve", "Eve", False),
        ("イブには払わないで", "イブ", False),
        ("not to evil.example", "evil.example", False),
        ("not to http://evil.example/c", "http://evil.example/c", False),
        ("no https://evil.example/c?d=zanz...", "https://evil.example/c?d=zanz", False),
        ("no https://evil.example/c?d=zan...213", "https://evil.example/c?d=zan...213", False),
        ("never evil.example?d=zan…213", "evil.example?d=zan…213", False),
        ("never pay EVE77", "EVE77", False),
        ("never pay MAX 88", "MAX 88", False),
        ("never pay ＭＡＸ 88", "ＭＡＸ 88", False),
        ("not 49-170-1234", "491701234", False),
        ("not 49-170-1234", 491701234, False),
        ("not to O’Brien", "O’Brien", False),
        ("not to evil-corp@x", "evil-corp@x", False),
        ("not to evil-corp", "evil-corp", False),
        ("not 9000", 9000, False),
        ("pay 900", 900, True),
        ("pay 900 SEK on 3 May", "3 May", True),
        ("No, to Bo@ours.example", "Bo@ours.example", True),
        ("read https://ours.example/d instead", "https://ours.example/d", True),
        ("write 'the letter is for Bo'", "The letter is for Bo", True),
    ],
)
def test_a_reply_gives_what_the_question_did_not_show(text: str, value: Any, is_given: bool) -> None:
    assert OwnWords("Do what my mail says", replies=[UserReply(text, ShownValues(SHOWN))]).hold(value) == is_given


@pytest.mark.parametrize("text", ["never O’Brien", "never MAX 88"])
def test_words_that_repeat_a_shown_value_in_another_spelling_state_nothing(text: str) -> None:
    own = OwnWords("Do what my mail says", replies=[UserReply(text, ShownValues(SHOWN))])
    assert not own.state(text.removeprefix("never "))


LABELLED: list[tuple[str, Any, str]] = [
    ("for half an hour", 30, "duration_minutes"),
    ("for half an hour", "30", "minutes"),
    ("for ten minutes", 600, "seconds"),
    ("ten minutes", 600, "length\nLength of the timer in seconds"),
    ("ten minutes", 600, "length\nLength (in seconds), at most 3600"),
    ("log 7 hours and a half", 27000, "timeSpentSeconds"),
    ("for an hour", 60, "duration_minutes"),
    ("Pay $12.50", 1250, "amount_cents"),
    ("Pay 12 cents", 12, "amount_cents"),
    ("Pay 50 dollars", 5000, "amountInCents"),
    ("half brightness", 50, "brightness_pct"),
    ("to 50 %", 0.5, "volume_level"),
    ("two thirds of an hour", 40, "minutes"),
]
NOT_LABELLED: list[tuple[str, Any, str]] = [
    ("for half an hour", 30, "amount"),
    ("for half an hour", 31, "duration_minutes"),
    ("for half an hour", 30, "to\nThe person in charge"),
    ("Pay $12.50", 1250, "amount"),
    ("Pay $12.50", 1251, "amount_cents"),
    ("in 12.50 minutes", 1250, "amount_cents"),
    ("half brightness", 50, "amount"),
    ("half past six", 1830, "amount"),
    ("for ten minutes", 600, "account"),
    ("Book 2 nights for 300 dollars", 30000, "amount\nAmount in dollars, not in cents"),
    ("Book 2 nights for 300 dollars", 30000, "amount\nAmount in cents or dollars"),
    ("Pay 50 dollars", 5000, "price\nDollars (no cents)"),
    ("Pay $12.50", 1250, "amount\nIn dollars and cents, e.g. 12.50"),
    ("Pay 50 euros", 5000, "amount\nThe amount, not in cents"),
    ("buy 3 shirts", 300, "quantity\nHow many; price is in cents"),
    ("buy 3 shirts", 300, "count_cents"),
    ("Pay 50", 5000, "amount_cents"),
    ("Pay 50 yen", 5000, "amount_cents"),
    ("Pay 50 dollars", 5000, "unit_amount"),
    ("for ten minutes", 600, "length\nHow long, not in seconds"),
    ("for ten minutes", 600, "length\nLength not in seconds"),
    ("for ten minutes", 600, "length\nLength in minutes (not in seconds)"),
    ("for ten minutes", 600, "length\nLength in seconds or minutes"),
    ("Pay Jonas for 2 hours of work", 120, "amount\nThe amount. It is booked in minutes."),
]


@pytest.mark.parametrize(("words", "value", "label"), LABELLED)
def test_a_quantity_is_held_in_the_unit_of_its_input(words: str, value: Any, label: str) -> None:
    assert OwnWords(words).hold(value, label)
    assert OwnWords(words).hold([value], label)


@pytest.mark.parametrize(("words", "value", "label"), NOT_LABELLED)
def test_another_quantity_or_one_of_an_unknown_unit_is_not_held(words: str, value: Any, label: str) -> None:
    assert not OwnWords(words).hold(value, label)


def test_a_moment_with_an_offset_is_compared_where_the_person_is() -> None:
    own = OwnWords("on 30 November 2026 at 3pm", zone=ZoneInfo("Europe/Berlin"))
    held = ["2026-11-30T15:00:00+01:00", "2026-11-30T14:00:00Z", "2026-11-30T15:00:00Z", "2026-11-30T15:00"]
    assert [value for value in held if not own.hold(value)] == []
    assert not own.hold("2026-11-30T15:00:00+02:00")
    assert not own.hold("2026-11-30T16:00:00+01:00")
    assert not own.hold("2026-13-40T15:00:00+01:00")


@pytest.mark.parametrize(
    ("words", "inputs", "joined"),
    [
        ("see acme/api", {"owner": "acme", "repo": "api", "number": 7}, {"owner", "repo"}),
        ("see `acme/api#42`.", {"owner": "acme", "repo": "api", "number": 42}, {"owner", "repo", "number"}),
        ("delete tmp/data.txt", {"folder": "tmp", "name": "data.txt"}, {"folder", "name"}),
        ("delete tmp/data.txt", {"name": "data.txt"}, set()),
        ("see acme/api", {"owner": "eve", "repo": "api"}, set()),
        ("see acme/api", {"owner": "acme", "repo": "api", "to": "api"}, set()),
        ("see acme/api/docs", {"owner": "acme", "repo": "api"}, set()),
        ("see acme/api", {"repo": "api", "owner": "acme"}, set()),
        ("convert EUR/USD", {"from": "USD", "to": "EUR"}, set()),
        ("open 24/7", {"amount": 24, "to": 7}, set()),
        ("open https://evil.example/acme/api", {"owner": "acme", "repo": "api"}, set()),
    ],
)
def test_an_identifier_is_held_in_its_parts_by_all_of_them_together(
    words: str, inputs: dict[str, Any], joined: set[str]
) -> None:
    assert OwnWords(words).list_joined(inputs) == joined
