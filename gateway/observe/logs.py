"""Log formatters, for people or as JSON; each line has the ids of its request and run."""

import json
import logging
import re
import time
from contextvars import ContextVar
from datetime import UTC, datetime

from agent.core import events as ev
from agent.core.log_context import run_id
from agent.core.run_state import RunState

run_log = logging.getLogger("gateway.runs")

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the current HTTP request; runs started by it inherit it."""

_OWN_IDS = re.compile(r"\b(?:run|req|key|task|token)_[0-9a-f]{8,40}\b")
"""Our own ids, which are as long as keys but not secret."""
_KEY_LIKE = re.compile(r"[A-Za-z0-9+_=-]{16}")
"""Matches the shortest key or encoded secret."""
_OPERATOR_CODES = ("ERR_MODEL", "ERR_STORE", "ERR_EMBEDDER", "ERR_CONFIG", "ERR_INTERNAL", "ERR_VECTOR_SPACE")
"""Prefixes of the error codes that an operator must act on."""
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "request_id"}


class TextFormatter(logging.Formatter):
    """Formats one line for people. Control characters are escaped, so that a caller's text cannot forge a line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """The line with the ids of the request and the run at its end."""
        record.message = _escape_control_characters(record.message)
        line = super().formatMessage(record)
        ids = " ".join(one for one in (request_id.get(), run_id.get()) if one and one not in line)
        return f"{line} [{ids}]" if ids else line


class JsonFormatter(logging.Formatter):
    """Formats one JSON object a line: time (UTC), level, logger, message, ids, `extra` fields, and a defect's
    traceback.
    """

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
        line |= {key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class RedactingFormatter(logging.Formatter):
    """Removes this gateway's secrets and key-like words from another formatter's lines, tracebacks included.

    A library's error may quote the request it could not make.
    """

    def __init__(self, inner: logging.Formatter, secrets: tuple[str, ...]) -> None:
        super().__init__()
        self._inner = inner
        self._secrets = secrets

    def add_secrets(self, secrets: tuple[str, ...]) -> None:
        """Removes these secrets too."""
        self._secrets = tuple(dict.fromkeys((*self._secrets, *secrets)))

    def format(self, record: logging.LogRecord) -> str:
        """The redacted line."""
        line = self._inner.format(record)
        # Most lines contain no word as long as a key; loading the guardrails for them would take too long.
        if not _KEY_LIKE.search(_OWN_IDS.sub("", line)) and not any(secret in line for secret in self._secrets):
            return line
        from agent.policy.redaction.secrets import make_secret_finder  # noqa: PLC0415 - see above

        return make_secret_finder(self._secrets, "forms").redact(line)


def hide_in_logs(secrets: tuple[str, ...]) -> None:
    """Removes further secrets from every line from now on: keys that were stored while the gateway runs."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, RedactingFormatter):
            handler.formatter.add_secrets(secrets)


def _escape_control_characters(text: str) -> str:
    return text if text.isprintable() else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def log_run(state: RunState, event: ev.Event) -> None:
    """Logs the end of a run; as a warning if an operator must act. An observer of the ends of runs."""
    body = event.body
    code = body.failure.error_code if isinstance(body, ev.RunFailed) else None
    level = logging.WARNING if code is not None and code.startswith(_OPERATOR_CODES) else logging.INFO
    if not run_log.isEnabledFor(level):
        return
    seconds = round(max(0.0, event.at - state.created_at), 3)
    fields = {"run_id": event.run_id, "status": state.status, "code": code, "seconds": seconds, "room": state.room.id}
    ended = f"{state.status}, {code}," if code else state.status
    run_log.log(level, "run %s %s after %s s", event.run_id, ended, seconds, extra={**fields, "key": state.api_key_id})
