"""The bench of a fleet can fail: its judge finds runs that were lost or ended twice, and its table says so."""

from pathlib import Path

import pytest

from agent.core.events import Event, RunClaimed, RunSucceeded
from tests.bench.fleet import __main__ as bench
from tests.bench.fleet.fairness import find_places
from tests.bench.fleet.long_queue import read_durations
from tests.bench.fleet.table import Line, judge_ends, render
from tests.contract.journal_stores import make_run_created
from tests.soak.clients import SentRequest
from tests.soak.judge import judge_logs
from tests.soak.ledger import Ledger


def make_log(run_id: str, word: str, *, ends: int = 1, gap: int = 0) -> list[Event]:
    """A run's log, with so many ends, and so many seqs missing before the first."""
    bodies = [make_run_created(f"search and record {word}"), RunClaimed(worker="w"), *[RunSucceeded()] * ends]
    return [Event(run_id, seq + (gap if seq > 2 else 0), 1, 0.0, body) for seq, body in enumerate(bodies, start=1)]


@pytest.mark.parametrize(
    ("logs", "finding"),
    [
        ({}, "its accepted run is lost"),
        ({"r1": make_log("r1", "w00000e", ends=0)}, "it has 0 terminal events"),
        ({"r1": make_log("r1", "w00000e", ends=2)}, "it has 2 terminal events"),
        ({"r1": make_log("r1", "w00000e", gap=2)}, "seq 5 follows 2"),
        ({"r1": make_log("r1", "w00000e"), "r2": make_log("r2", "w00000e")}, "w00000e was begun 2 times"),
    ],
)
def test_the_judge_finds_a_run_that_was_lost_or_did_not_end_once(logs: dict[str, list[Event]], finding: str) -> None:
    asked = [SentRequest("agent", "w00000e", run_id="r1", status=202)]
    verdict = judge_logs(logs, asked, Ledger(), [])
    assert any(finding in one for one in verdict.findings), verdict.findings
    assert judge_logs({"r1": make_log("r1", "w00000e")}, asked, Ledger(), []).findings == []


def test_a_line_about_ends_misses_its_aim_for_one_run_or_one_fault_or_without_runs() -> None:
    assert judge_ends("2 x", 9, 9, []).verdict == "ok"
    assert [judge_ends("2 x", *case).verdict for case in ((9, 8, []), (9, 9, ["r1: twice"]), (0, 0, []))] == [
        "MISS"
    ] * 3


def test_the_table_shows_every_line_with_its_verdict_and_what_was_found() -> None:
    lines = [Line("1 rate", "14.0", "ideal 15"), judge_ends("2 kills", 2, 1, ["r1 did not end"])]
    text = render(lines, "a fleet").splitlines()
    assert text[0] == "a fleet"
    assert text[4].split("  ")[0] == "1 rate"
    assert text[5].endswith("MISS")
    assert text[-1].endswith("r1 did not end")


def test_the_places_of_an_owner_are_counted_among_all() -> None:
    assert find_places(["A", "B", "A", "B"], "B") == [1, 3]
    assert find_places(["A"], "B") == []


def test_durations_are_read_from_where_the_log_had_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("LOG:  duration: 9.0 ms\n")
    start = log.stat().st_size
    with log.open("a") as file:
        file.write("LOG:  duration: 0.250 ms  parse <unnamed>: SELECT 1\nLOG:  duration: 1.5 ms  execute x\n")
    assert read_durations(log, start) == [0.25, 1.5]


def test_the_short_form_takes_options_too_and_an_unknown_row_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    rows, sizes = bench.read_arguments(["2", "--short", "--kills", "4", "--pauses", "1", "2"])
    assert (rows, sizes.kills, sizes.pauses, sizes.jobs) == (["2"], 4, (1.0, 2.0), bench.SHORT.jobs)
    assert bench.read_arguments([]) == (list(bench.ROWS), bench.Sizes())
    with pytest.raises(SystemExit):
        bench.read_arguments(["9"])
    assert "no such row: 9" in capsys.readouterr().err


def test_without_the_programs_of_postgresql_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "find_binaries", lambda: None)
    monkeypatch.setattr("sys.argv", ["bench-fleet"])
    assert bench.main() == 2
    assert "apt-get install postgresql" in capsys.readouterr().err
