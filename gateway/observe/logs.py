"""Log lines: for people, or one JSON object each; with the request and the run they belong to."""

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The HTTP request that is being served; runs it starts inherit it."""

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "request_id"}


class TextFormatter(logging.Formatter):
    """One line for people; control characters shown, so that a text from outside cannot forge a line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        """UTC, to the second."""
        return datetime.fromtimestamp(record.created, UTC).strftime(datefmt or "%Y-%m-%dT%H:%M:%SZ")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """The line, with the request's id at its end."""
        record.message = _visible(record.message)
        line = super().formatMessage(record)
        current = request_id.get()
        return f"{line} [{current}]" if current else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, request id, what was given as `extra`, and the
    traceback of a defect as one text."""

    def format(self, record: logging.LogRecord) -> str:
        """The object as JSON."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        current = request_id.get()
        if current:
            line["request_id"] = current
        line |= {key: value for key, value in vars(record).items() if key not in _OWN}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _visible(text: str) -> str:
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
