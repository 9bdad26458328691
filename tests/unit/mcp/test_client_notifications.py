"""What a foreign server says beside its results: in our log, bounded and harmless; progress as a line."""

import logging

import mcp_types as types
import pytest

from mcp_tools.client.notifications import MESSAGES_PER_MINUTE, make_log_handler, make_progress_handler


async def test_log_messages_reach_our_log_and_a_flood_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    now = 0.0
    heard = make_log_handler("srv", lambda: now)
    for _ in range(500):
        await heard(types.LoggingMessageNotificationParams(level="error", data={"a": "\x1b[31m" + "x" * 999}))
    now = 61.0
    await heard(types.LoggingMessageNotificationParams(level="info", data="better"))
    lines = [record.message for record in caplog.records]
    assert len(lines) == MESSAGES_PER_MINUTE + 2
    assert "\x1b" not in "".join(lines)
    assert max(map(len, lines)) < 400
    assert lines[-2] == f"MCP server 'srv' sent {500 - MESSAGES_PER_MINUTE} more log messages"
    assert lines[-1] == "MCP server 'srv' logs: better"
    assert caplog.records[0].levelno == logging.WARNING


async def test_progress_is_a_line_of_words_and_figures() -> None:
    lines: list[str] = []
    heard = make_progress_handler(lines.append)
    await heard(1, 4, "reading\u202e")
    await heard(2, None, None)
    assert lines == ["reading (1 of 4)", "2"]
