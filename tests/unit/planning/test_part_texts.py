"""The steps that a small model names, written as words or as code."""

import pytest

from agent.planning.request import RoundCall
from agent.planning.rounds.part_texts import find_named_tool, is_made, make_copy_check, reword_calls, select_parts

TOOLS = ["read_file", "query_table", "office__send_message"]
EXAMPLES = (
    'Request: Lend the newest book on trees to the members 7 and 8.\n{"next":{"kind":"calls","todo":["tell them",'
    '"find the newest book on trees and its author","lend it to member 7","lend it to member 8"]}}'
)
REQUEST = "How many of the 12 orders in orders.csv are paid?"


@pytest.mark.parametrize(
    ("part", "reworded"),
    [
        ("read_file(orders.csv)", True),
        ("query_table('SELECT count(*) FROM orders WHERE paid = 1', orders.csv, 1", True),
        ("office__send_message('done')", False),
        ("count the paid orders", False),
    ],
)
def test_a_call_that_waits_for_a_look_is_named_by_the_request(part: str, reworded: bool) -> None:
    long = f"{REQUEST} {'And please be quick about it. ' * 4}"
    assert reword_calls([part], ["read_file", "query_table"], long) == ({part: long[:80].strip()} if reworded else {})


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (["find the paid orders", "find the paid orders", "tell ann"], ["find the paid orders", "tell ann"]),
        (["the next calls", "lend it to member 7"], ["the next calls"]),
        (["read_file(orders.csv)", "limit=1", "all_rows=true", "orders.csv", "parse_price"], ["read_file(orders.csv)"]),
        (["start_line:1", "include_code:yes", "max:'5'", "12:30 lunch", "Ann: write to her", "https://a.example"],
         ["12:30 lunch", "Ann: write to her", "https://a.example"]),
        (["T", "T',", "", "?"], []),
        (["query_table(", "sum(order_paid) and region = 'north'"], ["query_table("]),
        (["send_message('done', 'ann')"], ["send_message('done', 'ann')"]),
        (["weather", "time"], ["weather", "time"]),
        (["Zähle die Bestellungen", "统计订单"], ["Zähle die Bestellungen", "统计订单"]),
        (["(1) count the orders", "the rent (in euros)", "limit = 1"], ["(1) count the orders", "the rent (in euros)"]),
        (["count the 12 orders", "lend it to member 7", "book 3 rooms"], ["count the 12 orders", "book 3 rooms"]),
        (["tell them", "find the paid ones"], ["find the paid ones"]),
        (["find the author of the orders", "send the author a message", "find the paid ones"], ["find the paid ones"]),
    ],
    ids=[
        "twice",
        "words of the form",
        "code",
        "inputs",
        "letters",
        "calls",
        "server",
        "words",
        "languages",
        "brackets",
        "figures",
        "a copy",
        "things",
    ],
)  # fmt: skip
def test_only_steps_are_kept_each_once(said: list[str], kept: list[str]) -> None:
    context = f"{REQUEST}\n{' '.join(TOOLS)}"
    assert select_parts(said, TOOLS, make_copy_check(REQUEST, context, EXAMPLES)) == kept


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("send_message(ann)", "office__send_message"),
        ("Query_Table", "query_table"),
        ("read the file", ""),
        ("read_file the notes", ""),
        ("query_table ('SELECT 1')", "query_table"),
        ("(", ""),
        ("", ""),
    ],
)
def test_a_tool_is_named_with_or_without_its_server(part: str, name: str) -> None:
    assert find_named_tool(part, TOOLS) == name


@pytest.mark.parametrize(
    ("part", "made"),
    [
        ("read_file(orders.csv)", True),
        ("read_file(path='orders.csv')", True),
        ("read_file(", True),
        ("read_file(other.csv)", False),
        ("query_table(orders.csv)", False),
        ("read orders.csv", False),
    ],
)
def test_a_part_that_is_written_as_a_call_is_done_by_that_call(part: str, made: bool) -> None:
    call = RoundCall(0, "read_file", {"path": "orders.csv"}, "id,status")
    assert is_made(part, [call]) is made
    failed = RoundCall(0, "read_file", {"path": "orders.csv"}, "no such file", failed=True)
    assert not is_made(part, [failed])
