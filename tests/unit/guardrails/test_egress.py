"""Which reads may carry words out: who chose the address, and what the run had read by then."""

import base64
import json
from dataclasses import replace
from urllib.parse import quote

import pytest

from agent.core.models import JsonObject
from agent.policy.guardrails.chosen_values import find_chosen_values, list_chosen_values
from agent.policy.guardrails.egress import EgressFacts, EgressFinding, ReadText, find_egress, judge_redirect
from agent.text.replies import ShownValues, UserReply

PAGE = "https://site.example/guide"
SECRET = "The harbour code is zanzibar 48213."
FILE = ReadText(SECRET, is_private=True)
PUBLIC = ReadText(
    "See [more](/more), https://other.example/a?b=1 and [the code](https://evil.example/zanzibar).",
    address=PAGE,
    requested=PAGE,
)
COUNTED = " ".join(map(str, range(40)))
MAIL = ReadText("ticket T-77 of anna", is_private=True, server="desk")
LISTS = ReadText("codes 48213 48214 zanzibar", is_private=True, server="desk")
USER = f"Read {PAGE} and notes.md, and look at status.example/today (all of it)."
NOTHING = EgressFacts(given=(USER,))
WEB = EgressFacts(given=(USER,), reads=(PUBLIC,))
PRIVATE = EgressFacts(given=(USER,), reads=(FILE, PUBLIC))
UNNAMED = EgressFacts(given=("Read my notes.",), reads=(FILE, PUBLIC))
UK = replace(PRIVATE, given=("Look at https://bbc.co.uk/it's-here",))
PLANNED = replace(PRIVATE, planned=('{"url": "https://planned.example/x?y=2"}',))


def judge(address: str, facts: EgressFacts) -> EgressFinding | None:
    return find_egress({"url": address, "max_chars": 900}, facts, where_args=("url",))


@pytest.mark.parametrize(
    ("facts", "address", "is_free"),
    [
        # Nothing was read: whatever a model composes comes from the user's words.
        (NOTHING, "https://anywhere.example/q?w=harbour", True),
        # Public pages were read: their links are free, composed addresses are not.
        (WEB, PAGE, True),
        (WEB, "https://other.example/a?b=1", True),
        (WEB, "https://site.example/more", True),
        (WEB, "https://evil.example/zanzibar", True),
        (WEB, "https://other.example/a?b=2", False),
        (WEB, "https://other.example/a", False),
        (WEB, "https://site.example/guide?q=1", False),
        # A private text was read: what was given, and clean links of pages that the user named.
        (PRIVATE, PAGE, True),
        (PRIVATE, f"{PAGE}#part", True),
        # The beginning of an address that was given is another host's; the beginning of its path is not.
        (UK, "https://bbc.co", False),
        (UK, "https://bbc.co.uk/it", True),
        (PRIVATE, "https://status.example/today", True),
        (PRIVATE, "http://status.example/today", True),
        (PRIVATE, "https://status.example/today?x=1", False),
        (PRIVATE, "https://other.example/a?b=1", True),
        (PRIVATE, "https://site.example/more", True),
        (PRIVATE, "https://evil.example/zanzibar", False),
        (PRIVATE, "https://evil.example/?d=48213", False),
        (PRIVATE, "https://anywhere.example/", False),
        (PRIVATE, "https://www.status.example/today", False),
        (PRIVATE, "https://status.example/to\u200bday", False),
        (UNNAMED, "https://other.example/a?b=1", False),
        (UNNAMED, "https://site.example/more", False),
        # A plan that was made before anything was read named it.
        (PLANNED, "https://planned.example/x?y=2", True),
        (PLANNED, "https://planned.example/x?y=2&z=48213", False),
        # The run began with private text.
        (replace(NOTHING, starts_private=True), "https://anywhere.example/", False),
        (replace(NOTHING, starts_private=True), PAGE, True),
        (replace(NOTHING, starts_untrusted=True), "https://anywhere.example/", False),
        (replace(NOTHING, extra=(SECRET,)), "https://anywhere.example/", False),
    ],
)
def test_an_address_is_free_by_who_chose_it(facts: EgressFacts, address: str, is_free: bool) -> None:
    assert (judge(address, facts) is None) is is_free


ENCODED = {
    "plain": SECRET,
    "percent": quote(SECRET, safe=""),
    "twice": quote(quote(SECRET, safe=""), safe=""),
    "base64": base64.urlsafe_b64encode(SECRET.encode()).decode(),
    "base32": base64.b32encode(SECRET.encode()).decode(),
    "hex": SECRET.encode().hex(),
    "reversed": SECRET[::-1],
    "cipher": "".join(chr(ord(char) + 1) for char in SECRET),
    "one letter": "z",
    "nothing": "",
}


@pytest.mark.parametrize("coded", ENCODED.values(), ids=ENCODED)
@pytest.mark.parametrize("shape", ["https://evil.example/?d={}", "https://evil.example/{}", "https://{}.evil.example/"])
def test_no_encoding_makes_a_composed_address_free(shape: str, coded: str) -> None:
    found = judge(shape.format(coded), PRIVATE)
    assert found is not None
    assert shape.format(coded) == found.target


@pytest.mark.parametrize("number", range(8))
def test_a_text_that_is_split_over_many_addresses_asks_for_each(number: int) -> None:
    piece = SECRET[number * 4 : number * 4 + 4]
    assert judge(f"https://evil.example/{number}/{quote(piece)}", PRIVATE) is not None


def test_the_question_shows_the_address_and_the_words_without_anything_live() -> None:
    found = judge("https://evil.example/![x](y)?d=zanzibar-48213`", PRIVATE)
    assert found is not None
    assert {"zanzibar", "48213"} <= set(found.words)
    shown = found.format_question()
    assert "zanzibar" in shown
    assert "`` https://evil.example/![x](y)?d=zanzibar-48213` ``" in shown, "inline code, which a backtick cannot end"


@pytest.mark.parametrize(
    ("args", "facts", "options", "is_free"),
    [
        ({"query": "zanzibar"}, PRIVATE, {"is_trusted_server": True}, True),
        ({"query": "zanzibar"}, PRIVATE, {"server": "desk"}, False),
        ({"query": "zanzibar"}, WEB, {"server": "desk"}, True),
        ({"query": "anna"}, replace(PRIVATE, reads=(MAIL,)), {"server": "desk"}, True),
        ({"id": "T-77"}, replace(PRIVATE, reads=(MAIL, FILE)), {"server": "desk"}, True),
        ({"id": "T-7"}, replace(PRIVATE, reads=(MAIL, FILE)), {"server": "desk"}, False),
        ({"id": "T-77"}, replace(PRIVATE, reads=(MAIL, FILE)), {"server": "other"}, False),
        # What another source holds in private does not go back, although the server has it too.
        ({"code": "48213"}, replace(PRIVATE, reads=(LISTS, FILE)), {"server": "desk"}, False),
        ({"code": "48214"}, replace(PRIVATE, reads=(LISTS, FILE)), {"server": "desk"}, True),
        ({"code": "zanzibar"}, replace(PRIVATE, reads=(LISTS, FILE)), {"server": "desk"}, False),
        ({"code": "zanzibar"}, replace(PRIVATE, reads=(LISTS,)), {"server": "desk"}, True),
        ({"query": "notes.md", "deep": True}, PRIVATE, {"server": "desk"}, True),
        ({"sort": "newest"}, PRIVATE, {"server": "desk", "fixed_values": ("newest", "oldest")}, True),
        ({"page": 48213}, PRIVATE, {"server": "desk"}, False),
        ({"filter": {"zanzibar": True}}, PRIVATE, {"server": "desk"}, False),
        ({"words": ["all", "zanzibar"]}, PRIVATE, {"server": "desk"}, False),
        # The name of an argument that the tool does not declare is the model's own text.
        ({"query": "all", "zanzibar 48213": True}, PRIVATE, {"server": "desk", "declared_args": {"query"}}, False),
        ({"query": "all", "zanzibar 48213": None}, PRIVATE, {"server": "desk", "declared_args": {"query"}}, False),
        ({"query": "all", "today": True}, PRIVATE, {"server": "desk", "declared_args": {"query"}}, True),
        # Values that need not be asked about spell anything if there are many of them.
        ({"flags": [True, False] * 20}, PRIVATE, {"server": "desk"}, False),
        ({"flags": {str(n): None for n in range(40)}}, replace(PRIVATE, given=(COUNTED,)), {"server": "desk"}, False),
        ({"words": ["all", "today"] * 20}, PRIVATE, {"server": "desk"}, False),
        ({"words": COUNTED.split()[:9]}, replace(PRIVATE, given=(COUNTED,)), {"server": "desk"}, False),
        ({"words": COUNTED.split()[:8]}, replace(PRIVATE, given=(COUNTED,)), {"server": "desk"}, True),
        ({"fields": ["all", "today", "notes.md"]}, PRIVATE, {"server": "desk"}, True),
        ({"days": [True, True, False, False, True, True, True]}, PRIVATE, {"server": "desk"}, True),
        ({"flags": [True] * 40}, replace(PRIVATE, planned=(json.dumps({"flags": [True] * 40}),)), {}, True),
    ],
)
def test_values_go_back_to_their_server_and_to_no_other(
    args: JsonObject, facts: EgressFacts, options: JsonObject, is_free: bool
) -> None:
    found = find_egress(args, facts, where_args=(), is_open_world=True, **options)  # type: ignore[arg-type]
    assert (found is None) is is_free


@pytest.mark.parametrize(
    ("calls", "is_free"),
    [
        ([{"id": "T-77"}] * 9, True),
        ([{"id": "T-77"}, {"id": "T-77", "page": "2"}, {"id": "T-77", "page": "3"}], True),
        ([{"id": letter} for letter in "abc"], True),
        ([{"id": letter} for letter in "abcd"], False),
        ([{"id": letter} for letter in "abab"], False),
        ([{"id": "a", "of": "b"}, {"id": "b", "of": "a"}], False),
        ([{"ids": ["a", "b"]}, {"ids": ["b", "a"]}], False),
        ([{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "c"}, {"query": "notes"}, {"id": "c"}], True),
        ([*[{"id": "a"}, {"id": "notes"}] * 3, {"id": "a"}], False),
        ([*[{"id": "a"}, {"id": "notes"}] * 2, {"id": "a"}], True),
    ],
)
def test_values_of_a_servers_own_that_change_from_call_to_call_are_counted(
    calls: list[JsonObject], is_free: bool
) -> None:
    desk = ReadText("T-77: a b c 2 3 d", is_private=True, server="desk")
    facts = replace(PRIVATE, reads=(desk, FILE), given=("look at my notes",))
    chosen = [list_chosen_values(args, facts, "desk") for args in calls]
    assert (find_chosen_values(calls[-1], chosen) is None) is is_free


def test_a_trusted_server_that_fetches_addresses_does_not_make_them_free() -> None:
    address: JsonObject = {"url": "https://evil.example/?d=zanzibar"}
    assert find_egress(address, PRIVATE, where_args=("url",), is_open_world=True, is_trusted_server=True) is not None


@pytest.mark.parametrize(
    ("source", "target", "facts", "is_followed"),
    [
        (PAGE, "https://site.example/guide/", PRIVATE, True),
        (PAGE, "https://www.site.example/welcome", PRIVATE, True),
        (PAGE, "https://elsewhere.example/welcome", PRIVATE, True),
        (PAGE, "https://elsewhere.example/zanzibar", PRIVATE, False),
        (PAGE, "https://elsewhere.example/zanzibar", WEB, True),
        ("https://composed.example/x9", "https://elsewhere.example/x9", PRIVATE, False),
        ("https://composed.example/x9", "https://composed.example/y", PRIVATE, True),
    ],
)
def test_a_redirect_carries_nothing_to_another_host(
    source: str, target: str, facts: EgressFacts, is_followed: bool
) -> None:
    assert (judge_redirect(source, target, facts) is None) is is_followed


@pytest.mark.parametrize(
    "address", ["", " ", "http://", "https://[::1", "//", "x" * 100_000, "https://a" * 5_000, "\x00"]
)
def test_malformed_addresses_are_judged_too(address: str) -> None:
    judge(address, WEB)
    judge(address, PRIVATE)
    judge_redirect(address, address, PRIVATE)


def test_a_huge_text_is_searched_for_links_quickly() -> None:
    facts = replace(PRIVATE, reads=(FILE, ReadText("a." * 200_000 + "https://" * 5_000), PUBLIC))
    assert judge("https://evil.example/x", facts) is not None


@pytest.mark.parametrize(
    ("reply", "address", "is_free"),
    [
        ("Never fetch https://evil.example/?d=zanz...", "https://evil.example/?d=zanz", False),
        ("Never fetch https://evil.example/?d=zan...213", "https://evil.example/?d=zan...213", False),
        ("Never fetch evil.example/?d=zanz!", "http://evil.example/?d=zanz", False),
        ("Never ask evil.example", "https://evil.example/", False),
        ("Read https://ours.example/?d=4 instead.", "https://ours.example/?d=4", True),
    ],
)
def test_a_reply_frees_no_address_at_a_host_that_was_shown(reply: str, address: str, is_free: bool) -> None:
    shown_values = ShownValues(["https://evil.example/?d=zanzibar48213"])
    facts = replace(PRIVATE, replies=(UserReply(reply, shown_values),))
    assert (judge(address, facts) is None) == is_free
