"""`stepgate schedules`, as a person types it."""

from datetime import UTC, datetime
from pathlib import Path

from agent.core.settings import Settings
from gateway.bootstrap_database import build_statements, open_store
from gateway.features.schedules.engine.schedule_store import ScheduleStore, Tick
from tests.integration.test_cli import stepgate


async def test_show_has_every_field_in_the_zone_of_the_schedule_and_counts_older_ticks(tmp_path: Path) -> None:
    made, output = stepgate(
        tmp_path, "schedules", "create", "morning", "0 7 * * *", "calculate 2+2", "--timezone", "Asia/Tokyo",
        "--overlap", "allow", "--misfire", "skip", "--webhook", "http://127.0.0.1:9/hook",
        fetch_allow_hosts="127.0.0.1:9",
    )  # fmt: skip
    assert made == 0, output
    assert "07:00+09:00" in output
    store = await open_store(Settings(_env_file=None, data_dir=tmp_path / "data"))
    schedules = ScheduleStore(build_statements(store), lambda: 0.0)
    schedule = await schedules.get("local", "morning")
    for day in range(12):
        at = datetime(2026, 1, 1 + day, 22, tzinfo=UTC).timestamp()
        await schedules.record(schedule, Tick(at, "cron", "skipped", None, "still running", day), next_tick=None)
    await store.close()
    code, output = stepgate(tmp_path, "schedules", "show", "morning")
    assert code == 0, output
    for field in (
        "overlap   allow",
        "misfire   skip",
        "enabled   yes",
        "room",
        "http://127.0.0.1:9/hook",
        schedule.id,
    ):
        assert field in output
    assert "2026-01-13 07:00+09:00  skipped  still running  (11 missed before it)" in output
    assert "2026-01-03" not in output
    assert "and 2 older: --ticks 12" in output
    _, whole = stepgate(tmp_path, "schedules", "show", "morning", "--ticks", "12")
    assert "2026-01-02 07:00+09:00" in whole
    assert "older" not in whole


def test_wrong_values_are_answered_in_words(tmp_path: Path) -> None:
    code, output = stepgate(tmp_path, "schedules", "create", "my report", "@daily", "calculate 2+2")
    assert (code, "letters" in output, "^[" in output) == (1, True, False), output
    code, output = stepgate(tmp_path, "schedules", "create", "report", "61 * * * *", "calculate 2+2")
    assert (code, "@yearly" in output) == (1, True), output
