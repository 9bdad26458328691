"""The bench's table can be read: every row, its aim kept or missed, and the references that were or were not had."""

from tests.bench.report import Row, render

ROWS = [
    Row("1 CPU a turn", "ms", 3.9, 4.0, 0.4, 15.6),
    Row("2 p99 over the critical path", "", 1.3, 1.15, 1.02, "no peer"),
    Row("5 model calls over the minimum", "", 1.0, 1.0, note="(11 of 13 caught)", details=["unnoticed: one"]),
    Row("7 throughput with durability over without", "", 0.8, 0.85, at_least=True),
]


def test_every_row_tells_its_figure_its_aim_and_what_it_is_of_the_references() -> None:
    lines = render(ROWS, peer="no peer: no network", rounds=3, seconds=12.3).splitlines()
    cpu, p99, calls, throughput = lines[4:8]
    assert cpu.split("  ")[0] == "1 CPU a turn"
    assert "9.75 x floor, 0.25 x peer" in cpu
    assert [" ok " in line for line in (cpu, p99, calls, throughput)] == [True, False, True, False]
    assert "MISS" in p99
    assert p99.endswith("1.27 x floor")
    assert "1.00 (11 of 13 caught)" in calls
    assert "5: unnoticed: one" in lines
    assert ">= 0.85  MISS" in throughput
    assert "no peer: no network" in lines[2]
    assert "3 rounds" in lines[0]
    assert lines[-1] == "measured in 12 s"


def test_columns_stand_under_their_heads() -> None:
    heads, rule, *rows = render(ROWS, peer="p 1.0", rounds=3).splitlines()[2:8]
    place = heads.index("floor")
    assert rule[place - 2 : place + 1] == "  -"
    assert [row[place - 1] for row in rows] == [" "] * 4
    assert [row[place] for row in rows] == ["0", "1", "-", "-"]
