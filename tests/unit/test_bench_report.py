"""The bench's table can be read: every row, its aim kept or missed, and the references that were or were not had."""

from tests.bench.report import Row, compare, render

NO_PEER = "no peer: no network"
ROWS = [
    Row("1 CPU a turn", "ms", 3.9, 4.0, {"floor": 0.4, "pydantic-ai": 15.6, "LangGraph": 20.0}),
    Row("2 p99 over the critical path", "", 1.3, 1.15, {"floor": 1.02, "LangGraph": NO_PEER}),
    Row("5 model calls over the minimum", "", 1.0, 1.0, note="(11 of 13 caught)", details=["unnoticed: one"]),
    Row("7 throughput with durability over without", "", 0.8, 0.85, at_least=True),
    Row("8 CPU of a stream", "ms", 2.0, 8.0, {"LangGraph": NO_PEER}),
]
VERSIONS = {"floor": "a pass-through proxy", "pydantic-ai": "pydantic-ai-slim 2.68.0", "LangGraph": "langgraph 1.2.22"}


def test_every_row_tells_its_figure_its_aim_and_what_it_is_of_the_references() -> None:
    lines = render(ROWS, rounds=3, versions=VERSIONS, seconds=12.3).splitlines()
    cpu, pydantic_ai, langgraph, p99, absent, calls, throughput, _ = (line.split() for line in lines[4:12])
    assert cpu == ["1", "CPU", "a", "turn", "3.90", "ms", "<=", "4", "ms", "ok", "floor", "0.40", "ms", "9.75", "x"]
    assert pydantic_ai == ["pydantic-ai", "15.6", "ms", "0.25", "x"]
    assert langgraph == ["LangGraph", "20.0", "ms", "0.20", "x"]
    assert p99[-7:] == ["<=", "1.15", "MISS", "floor", "1.02", "1.27", "x"]
    assert absent == ["LangGraph", "-"]
    assert "1.00 (11 of 13 caught)" in " ".join(calls)
    assert throughput[-4:] == [">=", "0.85", "MISS", "-"]
    assert "5: unnoticed: one" in lines
    assert "3 rounds" in lines[0]
    assert lines[-1] == "measured in 12 s"


def test_what_the_references_are_and_why_one_is_absent_stands_once_below_the_table() -> None:
    lines = render(ROWS, rounds=3, versions=VERSIONS).splitlines()
    assert lines[-3:] == [
        "floor: a pass-through proxy",
        "pydantic-ai: pydantic-ai-slim 2.68.0",
        f"LangGraph: {NO_PEER}",
    ]
    assert sum(NO_PEER in line for line in lines) == 1


def test_columns_stand_under_their_heads() -> None:
    heads, rule, *rows = render(ROWS, rounds=3).splitlines()[2:12]
    place = heads.index("references")
    assert rule[place - 2 : place + 1] == "  -"
    assert [row[place - 1] for row in rows] == [" "] * 8
    assert [row[place] for row in rows] == ["f", "p", "L", "f", "L", "-", "-", "L"]


def test_a_line_has_at_most_140_characters_whatever_the_cells_hold() -> None:
    wide = Row(
        "4 " + "makespan over the critical path " * 4, "turns/s", 123456.0, 123456.0,
        {"pydantic-ai": 123456.0}, at_least=True, note="(13 of 13 bad steps caught and many more) " * 2,
    )  # fmt: skip
    lines = render([wide, *ROWS], rounds=3).splitlines()[2:]
    assert max(map(len, lines)) <= 140
    words = " ".join(line[:48] for line in lines[2:8])
    assert words.split().count("makespan") == 4


def test_a_comparison_is_with_the_fastest_of_those_that_could_be_had() -> None:
    cpu, p99, *_, stream = ROWS
    assert [row.cells() for row in compare(cpu, ("pydantic-ai", "LangGraph"), aim=0.2)] == [
        ("1 the same over the fastest of them, pydantic-ai", "0.25 x", "<= 0.2 x", "MISS")
    ]
    assert [row.cells()[0] for row in compare(p99, ("floor", "LangGraph"), aim=2)] == [
        "2 the same over the fastest of them, floor"
    ]
    assert compare(stream, ("LangGraph",), aim=0.05) == []


def test_a_small_ratio_is_judged_by_three_digits() -> None:
    assert [Row("r", "x", ours, 0.05).cells()[1:] for ours in (0.0504, 0.0512)] == [
        ("0.050 x", "<= 0.05 x", "ok"),
        ("0.051 x", "<= 0.05 x", "MISS"),
    ]


def test_a_row_that_cannot_be_measured_here_is_named_with_the_reason() -> None:
    lines = render(ROWS[:1], rounds=3, not_measured={"13": "no PostgreSQL"}, seconds=1).splitlines()
    assert lines[-2:] == ["13: not measured: no PostgreSQL", "measured in 1 s"]
