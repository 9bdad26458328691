"""What an endpoint's HTTP answer means: one typed error a cause, with the provider's words shortened."""

import errno
import json
import os
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from agent.core.errors import (
    FAILURES,
    ModelAuthError,
    ModelContextError,
    ModelDownError,
    ModelError,
    ModelRateLimitError,
    ModelRequestError,
    ModelTimeoutError,
)

SETTING = "AGENT_LLM_BASE_URL"
"""The setting an endpoint that cannot be reached comes from."""

_CONTEXT = re.compile(
    r"context_length_exceeded|maximum context length|context window|exceeds? the (?:available )?context|"
    r"prompt is too long|input length .* exceeds|too many tokens",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?://[^\s'\"]+")
_RAW = re.compile(r": b(?P<quote>['\"]).*(?P=quote)", re.DOTALL)
_SETTING = re.compile(r"(?:; check)? \(?AGENT_[A-Z_]+\)?")
_SCHEMA = re.compile(r"response_format|json_schema|structured output|grammar|schema", re.IGNORECASE)


def fault_of(status: int, headers: Mapping[str, str], body: bytes, where: str) -> ModelError:
    """The error an HTTP status of 400 or more stands for."""
    said = provider_message(body)
    told = f"{where} answered {status}: {said}" if said else f"{where} answered {status}"
    if status in (401, 403):
        return ModelAuthError(f"{told}; check AGENT_LLM_API_KEY", agent_id="models", status=status)
    if status == 429:
        limited = ModelRateLimitError(told, agent_id="models", status=status)
        limited.retry_after_s = retry_after(headers)
        return limited
    if status in (408, 504):
        return ModelTimeoutError(told, agent_id="models", status=status)
    if status in (400, 413, 422) and _CONTEXT.search(said):
        return ModelContextError(told, agent_id="models", status=status)
    if status >= 500:
        down = ModelDownError(told, agent_id="models", status=status)
        down.retry_after_s = retry_after(headers)
        return down
    return ModelRequestError(told, agent_id="models", status=status)


def for_strangers(error: ModelError, where: str | None) -> str:
    """An error's message for a caller who cannot mend the endpoint: without its address, the names of settings, and
    what it sent as it came. What the provider says of the request itself stays; the operator's log has all of it."""
    if error.code in ("ERR_MODEL_AUTH", "ERR_MODEL_DOWN"):
        return f"{FAILURES[error.code].meaning}; it is in the log of this gateway's operator, who has to look at it"
    told = error.message.replace(where.rstrip("/"), "the model's endpoint") if where else error.message
    told = _ADDRESS.sub("the model's endpoint", _RAW.sub("", told))
    return _SETTING.sub("", told)


def unreachable(where: str, error: BaseException) -> ModelDownError:
    """No connection to an endpoint: why, in a person's words, and what to do."""
    return ModelDownError(f"{where} cannot be reached: {_why_unreachable(error)} ({SETTING})", agent_id="models")


def _why_unreachable(error: BaseException) -> str:
    """The first cause that is known. Clients wrap it several times, in words of their own: of them only the
    system's are told, when nothing is known."""
    told = ""
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return "its name is not known to the DNS; is it spelt right?"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return "it does not speak TLS; is it http:// instead of https://?"
        if isinstance(cause, TimeoutError):
            return "no connection in time; is the address right, and does a firewall let it through?"
        if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
            return "connection refused; is the model server running?"
        if isinstance(cause, OSError) and cause.errno:
            told = os.strerror(cause.errno).lower()
    return told or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def refuses_schema(error: ModelError) -> bool:
    """Whether the endpoint refused the request because of its response schema."""
    return (
        isinstance(error, ModelRequestError)
        and error.details.get("status") in (400, 404, 422, 501)
        and _SCHEMA.search(error.message) is not None
    )


def provider_message(body: bytes, limit: int = 300) -> str:
    """The provider's own words, from the usual shapes of error bodies, in one line."""
    text = body[:20_000].decode("utf-8", errors="replace")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        error = data.get("error", data.get("detail", data.get("message", data)))
        if isinstance(error, dict):
            code, message = error.get("code"), error.get("message", error)
            error = f"{message} ({code})" if code else message
        text = error if isinstance(error, str) else json.dumps(error)
    line = " ".join(text.split())
    return line if len(line) <= limit else line[:limit] + "…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from `retry-after-ms`, or `Retry-After` as seconds or a date; None when absent or unreadable."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return max(0.0, float(milliseconds) / 1000)
        value = headers.get("retry-after")
        if value is None:
            return None
        if value.strip().replace(".", "", 1).isdigit():
            return float(value)
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
