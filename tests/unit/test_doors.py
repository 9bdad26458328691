"""`opens_door`: a test is at a door by what it starts, not by where it lies."""

from pathlib import Path

import pytest

from tests.doors import opens_door

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("path", "test", "expected"),
    [
        ("integration/test_rows_at_doors.py", "test_deadlines_are_found_each_with_its_moment", True),
        ("integration/test_http_streaming.py", "test_the_first_step_arrives_before_the_last_tool_has_finished", True),
        ("integration/test_cli.py", "test_a_wrong_setting_stops_the_start_with_one_line", True),
        ("integration/test_mcp_server.py", "test_the_agent_is_a_tool_with_progress", True),
        ("e2e/test_crashes.py", "test_a_gateway_killed_and_started_again_goes_on_with_its_runs", True),
        ("integration/test_engine.py", "test_a_failed_step_is_retried_once_with_feedback", False),
        ("integration/test_source_analyzer.py", "test_what_the_analyzers_tools_return_to_its_model", False),
        ("unit/test_decide.py", "test_a_dependent_starts_only_after_success", False),
    ],
)
def test_a_door_is_told_by_what_a_test_starts(path: str, test: str, expected: bool) -> None:
    assert opens_door(TESTS / path, test) is expected


def test_a_name_that_is_not_there_opens_nothing(tmp_path: Path) -> None:
    module = tmp_path / "test_x.py"
    module.write_text("def test_x(other): helper()\n")
    assert not opens_door(module, "test_x")
    assert not opens_door(module, "test_y")
