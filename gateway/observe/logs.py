"""Log lines: for people, or one JSON object each; with the request and the run they belong to."""

import json
import logging
import re
from contextvars import ContextVar
from datetime import UTC, datetime

from agent.core.context import run_id

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The HTTP request that is being served; runs it starts inherit it."""

_OURS = re.compile(r"\b(?:run|req|key|task|token)_[0-9a-f]{8,40}\b")
"""Ids of ours: as long as keys, and none."""
_KEY_LIKE = re.compile(r"[A-Za-z0-9+_=-]{16}")
"""Keys and encoded secrets are at least so long."""
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "request_id"}


class TextFormatter(logging.Formatter):
    """One line for people; control characters shown, so that a text from outside cannot forge a line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        """UTC, to the second."""
        return datetime.fromtimestamp(record.created, UTC).strftime(datefmt or "%Y-%m-%dT%H:%M:%SZ")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """The line, with the ids of the request and the run at its end."""
        record.message = _visible(record.message)
        line = super().formatMessage(record)
        ids = " ".join(one for one in (request_id.get(), run_id.get()) if one and one not in line)
        return f"{line} [{ids}]" if ids else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, ids of request and run, what was given as `extra`,
    and the traceback of a defect as one text."""

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
        if run := run_id.get():
            line["run_id"] = run
        line |= {key: value for key, value in vars(record).items() if key not in _OWN}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class DiscreetFormatter(logging.Formatter):
    """Another formatter's lines, tracebacks too, without this gateway's secrets and what looks like a key: a library's
    error may quote the request it could not make."""

    def __init__(self, inner: logging.Formatter, secrets: tuple[str, ...]) -> None:
        super().__init__()
        self._inner = inner
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = self._inner.format(record)
        # Most lines hold no word as long as a key; the guardrails take a while to load, and are not for them.
        if not _KEY_LIKE.search(_OURS.sub("", line)) and not any(secret in line for secret in self._secrets):
            return line
        from agent.execution.shield import secret_finder  # noqa: PLC0415 - as just said

        return secret_finder(self._secrets, "forms").redact(line)


def _visible(text: str) -> str:
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
