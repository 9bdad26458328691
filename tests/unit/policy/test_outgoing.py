"""A question begins with where something goes and what leaves, in plain text, whatever the person reads after it."""

from time import thread_time

import pytest
from pydantic import JsonValue

from agent.core.events import ApprovalItem, ApprovalRequested
from agent.core.models import ArgumentRole
from agent.policy.approval import format_outgoing, format_question
from tests.unit.guardrails.test_plain_text import is_live

RUN = f"run_{'a1' * 16}"
SECRET = "Dear Eve, the code of the safe is 4711 and nobody knows it. " * 20
MAIL_ROLES: dict[str, ArgumentRole] = {"to": "where", "body": "content", "amount": "amount"}


def make_item(tool: str = "send_mail", roles: dict[str, ArgumentRole] | None = None, **args: JsonValue) -> ApprovalItem:
    return ApprovalItem(
        step_id="s1", tool=tool, args=args, effect="effect", changes=True, roles=MAIL_ROLES if roles is None else roles
    )


def ask(*items: ApprovalItem) -> str:
    request = ApprovalRequested(
        approval_id=f"apr_{'b2' * 16}", digest="d", plan_version=0, reason="it changes something", items=items,
        call_id="call_1", expires_at=1.0,
    )  # fmt: skip
    return format_question((request,), RUN)


def test_the_place_and_the_first_words_are_above_everything_else() -> None:
    first, _, *rest = ask(make_item(to="eve@evil.example", body=SECRET, subject="x" * 3_000)).splitlines()
    assert first == "**Approval needed**: it changes something."
    assert rest[0].startswith("**Goes to**: `evil.example` (in `eve@evil.example`)")
    assert rest[1].startswith(f"**What leaves**: `{SECRET[:120].strip()}")
    assert f"({len(SECRET):,} characters)" in rest[1]
    assert rest[2] == ""
    assert rest[3].startswith("1. `send_mail`")


@pytest.mark.parametrize(
    ("value", "host"),
    [
        ("https://bank.example@evil.example/pay?to=1", "`evil.example`"),
        ("https://evil.example:8443/?d=4711", "`evil.example:8443`"),
        ("HTTPS://EVIL.example", "`evil.example`"),
        ("mailto:a@evil.example?body=4711", "`evil.example`"),
        ("https://\u0430pple.example/", "`xn--pple-43d.example`"),
        ("https://stra\xdfe.example/", "`xn--strae-oqa.example`"),
        ("https://\u0430pple..example/", "`xn--pple-43d..example`"),
        ("bo@ours.example <eve@evil.example>", "`evil.example`"),
        ("https://app\u200ble.example/", "`apple.example`"),
        ("a@appl\u202ee.example", "`a@appl\\u{202e}e.example`"),
        ("#general", "`#general`"),
        ("//evil.example/x", "`evil.example`"),
        ("https://[::1", "`https://[::1`"),
    ],
)
def test_the_host_is_the_one_that_the_network_knows(value: str, host: str) -> None:
    assert host in format_outgoing([make_item(to=value)])[0]


def test_what_an_address_carries_leaves_too() -> None:
    item = ApprovalItem(
        step_id="s1", tool="web_fetch", args={"url": f"https://evil.example/c?d={'4711' * 50}"}, roles={"url": "where"}
    )
    goes, leaves = format_outgoing([item])
    assert goes.startswith("**Goes to**: `evil.example`")
    assert leaves.startswith("**What leaves**: `/c?d=47114711")
    assert "(205 characters)" in leaves
    plain = ApprovalItem(step_id="s1", tool="web_fetch", args={"url": "https://a.example/"}, roles={"url": "where"})
    assert len(format_outgoing([plain])) == 1


def test_a_server_whose_tools_declare_nothing_is_the_place() -> None:
    item = make_item("mail__send", {"text": "other"}, text=SECRET)
    assert format_outgoing([item])[0] == "**Goes to**: the server `mail`"
    assert "4711" in format_outgoing([item])[1]
    named = make_item("mail__send", {"to": "other"}, to="eve@evil.example")
    assert format_outgoing([named]) == ["**Goes to**: `evil.example` (in `eve@evil.example`)"]


def test_no_place_is_left_out() -> None:
    items = [make_item(to=f"a{number}@x{number}.example", body="hello") for number in range(12)]
    goes, leaves = format_outgoing(items)
    assert all(f"x{number}.example" in goes for number in range(12))
    assert leaves == "**What leaves**: `hello` (5 characters)"


def test_a_stranger_among_many_colleagues_comes_first() -> None:
    to: list[JsonValue] = [*(f"colleague{number}@ours.example" for number in range(70)), "eve@evil.example"]
    goes = format_outgoing([make_item(to=to, body="hello")])[0]
    assert goes.startswith("**Goes to**: `evil.example` (in `eve@evil.example`); `ours.example` (in ")
    assert goes.endswith("`colleague4@ours.example` and 65 more)")
    assert len(goes) < 400
    assert format_outgoing([make_item(to=", ".join(map(str, to)), body="hello")])[0] == goes, "as one text too"


def test_of_a_long_place_the_end_is_there_too() -> None:
    item = make_item("files__write", {"path": "where"}, path=f"/home/{'a' * 4_000}/evil.txt")
    assert format_outgoing([item])[0].endswith("evil.txt` (4,015 characters)")


def test_what_sends_nothing_says_nothing_of_it() -> None:
    read = ApprovalItem(step_id="s1", tool="calculator", args={"expression": "6*7"}, roles={"expression": "other"})
    assert format_outgoing([read]) == []
    note = make_item("memory_save", {"text": "content"}, text="likes tea")
    assert format_outgoing([note]) == ["**What is written**: `likes tea` (9 characters)"]


@pytest.mark.parametrize(
    "evil", ["![a](https://evil.example/p.png)", "`` ` ![a](https://evil.example/p.png)", "\x1b[2J<img src=x>"]
)
def test_nothing_of_it_is_live(evil: str) -> None:
    shown = ask(make_item(to=evil, body=evil))
    assert not is_live(shown)
    assert "\x1b" not in shown


def test_characters_that_turn_text_are_written_out_in_every_argument() -> None:
    shown = ask(make_item(roles={}, to="a\u202egpj.exe", note="नमस्\u200dते\r\nline", path="x\x9b2Jy"))
    assert "a\\u{202e}gpj.exe" in shown
    assert "x\\u{009b}2Jy" in shown
    assert "नमस्\u200dते" in shown
    assert "000d" not in shown


@pytest.mark.parametrize("unit", ["a", "a ", "<", "@", ",", "a@b.io,"])
def test_a_long_place_is_shown_at_once(unit: str) -> None:
    value = unit * (60_000 // len(unit))
    started = thread_time()
    ask(make_item(to=value, body="x"))
    assert thread_time() - started < 1
