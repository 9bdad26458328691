"""Maps an endpoint's HTTP errors to typed model errors, and shortens the provider's message."""

import errno
import html
import json
import os
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from agent.core.containers import describe_unreached
from agent.core.errors import (
    ModelAuthError,
    ModelContextError,
    ModelDownError,
    ModelEndpointError,
    ModelError,
    ModelOutputError,
    ModelRateLimitError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnreachableError,
)
from agent.core.failures import FAILURES

_CONTEXT = re.compile(
    r"context_length_exceeded|\bcontext (?:length|window|size|limit)\b|\bmax(?:imum)? (?:context|prompt) length|"
    r"\bmodel token limit|\btoo many tokens|\b(?:maximum|max) (?:number of )?tokens allowed|"
    r"\b(?:prompt|input)s?\b(?: length)? (?:is|are)? ?too long|\binput length\b.{0,60}(?:exceed|should be|limit)|"
    r"`?inputs`? (?:tokens \+|must have less than)|\b(?:exceed\w*|longer than|overflow\w*) (?:\w+ ){0,3}context\b|"
    r"\bcontext (?:the )?overflow|\bprompt[ _]tokens?\b.{0,60}(?:exceed|less than|limit)|"
    r"\bmax(?:imum)? input (?:characters|length|tokens)\b|\bprompt \u8d85\u957f",
    re.IGNORECASE,
)
"""How servers say that a prompt, or a prompt with the limit of its reply, is longer than their context."""
_KEY_WORDS = re.compile(
    r"\b(?:incorrect|invalid|wrong|bad|missing|expired|revoked|unknown)[ _-]?(?:\w+ ){0,2}api[ _-]?key\b|"
    r"\bapi[ _-]?key[ _-](?:\w+ ){0,3}(?:not valid|invalid|incorrect|not found|expired|missing|revoked|disabled)\b|"
    r"\b(?:unauthenticated|authentication[ _]?error|invalid[ _]authentication)\b",
    re.IGNORECASE,
)
"""How providers say that they refuse the key where their status does not: Google and xAI answer 400."""
_CONTENT_WORDS = re.compile(
    r"\bflagged\b|\bmoderation|\bcontent[ _-]?(?:filter|policy|management)|\b(?:safety|usage)[ _-](?:policy|filter)|"
    r"\bresponsible[ _]?ai|\bdata[ _]?inspection|\bsensitive (?:words|content)",
    re.IGNORECASE,
)
"""How providers say that they refuse what was asked where their status is that of a refused key: OpenRouter's 403."""
_CREDIT_CODES = re.compile(r"\b(?:insufficient_quota|exceeded_current_quota)")
"""How providers that have no 402 say that the account is empty: OpenAI, and Moonshot."""
_ADDRESS = re.compile(r"https?://[^\s'\"]+")
_TITLE = re.compile(r"<title[^>]*>([^<]*)</title", re.IGNORECASE)
_SECONDS = re.compile(r"\d{1,6}(?:\.\d{1,9})?s")
_STATUS = re.compile(r"\d{3}")
_RAW = re.compile(r": b(?P<quote>['\"]).*(?P=quote)", re.DOTALL)
_SETTING = re.compile(r" \(AGENT_[A-Z_]+\)")
CONTEXT_ADVICE = "send a shorter request, or start the model with a larger context"
REFUSED_STATUS = frozenset({400, 409, 413, 415, 422})
"""The statuses that refuse the request itself, so that the caller can correct it."""


@dataclass(frozen=True, slots=True)
class ProviderError:
    """The error in a provider's response body. `param` and `code` are None where it names none."""

    message: str
    param: str | None = None
    code: str | None = None
    status: int | None = None
    """An HTTP status within the body: gateways and streams send errors with a 200."""
    written: str = ""
    """What the model had written, where the provider says so."""
    retry_after_s: float | None = None
    """The seconds to wait, where the body says so, as Google's does."""
    words: str = ""
    """What else names the cause: the fields beside the message that programs read."""

    @property
    def refuses_key(self) -> bool:
        """Whether the body says that the key is refused."""
        return _KEY_WORDS.search(f"{self.message} {self.words}") is not None

    @property
    def has_spent_credit(self) -> bool:
        """Whether the body says that the account has no credit left: waiting does not help."""
        return _CREDIT_CODES.search(self.words) is not None

    @property
    def refuses_content(self) -> bool:
        """Whether the body says that what was asked is refused."""
        return _CONTENT_WORDS.search(f"{self.message} {self.words}") is not None


def build_status_error(status: int, headers: Mapping[str, str], body: bytes, where: str) -> ModelError:
    """The model error for an HTTP status of 400 or more."""
    error = read_error(body)
    if 300 <= status < 400 and (target := headers.get("location")):
        error = replace(error, message=f"it is at {_join_lines(target, 200)} now; the address must be changed")
    return _build_error(status, headers, error, where, f"answered {status}")


def _build_error(status: int, headers: Mapping[str, str], error: ProviderError, where: str, what: str) -> ModelError:
    message = f"{where} {what}: {error.message}" if error.message else f"{where} {what}"
    about_key = status == 401 or (status == 403 and not error.refuses_content)
    if about_key or (status in REFUSED_STATUS and error.refuses_key):
        refused = ModelAuthError(message, agent_id="models", status=status)
        refused.remedy = "key"
        return refused
    if status == 429 and not error.has_spent_credit:
        limited = ModelRateLimitError(message, agent_id="models", status=status)
        stated = parse_retry_after(headers)
        limited.retry_after_s = error.retry_after_s if stated is None else stated
        return limited
    if status in (408, 504):
        return ModelTimeoutError(message, agent_id="models", status=status)
    if is_context_message(error.message):  # with status 500, too: llama.cpp
        return ModelContextError(f"{message}; {CONTEXT_ADVICE}", agent_id="models", status=status)
    if status >= 500:
        down = ModelDownError(message, agent_id="models", status=status)
        down.retry_after_s = parse_retry_after(headers)
        return down
    kind = ModelRequestError if status in REFUSED_STATUS or status == 403 else ModelEndpointError
    built = kind(message, agent_id="models", status=status, param=error.param, code=error.code)
    built.written = error.written
    return built


def is_context_message(message: str) -> bool:
    """Whether a provider's message says that the request is longer than the model's context."""
    return _CONTEXT.search(message) is not None


def build_body_error(error: object, where: str) -> ModelError:
    """The model error for an error body that came with status 200, in a reply or a stream.

    An error without a status counts as a provider that is down. `details["reported"]` holds the provider's own words,
    which callers may read: the endpoint has answered, so they are about the request.
    """
    reported = read_error(json.dumps({"error": error}).encode())
    built = _build_error(reported.status or 502, {}, reported, where, "reported an error")
    built.details["reported"] = reported.message
    return built


def build_form_error(what: str, body: bytes) -> ModelOutputError:
    """The model error for a body without a completion: a web page by its title, others by their first bytes. `what`
    begins the sentence.
    """
    if body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<":
        title = _TITLE.search(body[:20_000].decode("utf-8", errors="replace"))
        title_note = f" ({_join_lines(html.unescape(title[1]), 100)!r})" if title and title[1].strip() else ""
        paged = ModelOutputError(
            f"{what} with a web page{title_note} instead of a completion; is this the address of the API?",
            agent_id="models",
        )
        paged.remedy = "address"
        return paged
    excerpt = f"without JSON: {body[:100]!r}" if body.strip() else "with an empty body"
    return ModelOutputError(f"{what} {excerpt}", agent_id="models")


def build_foreign_error(where: str, value: object) -> ModelOutputError:
    """The model error for a call that was answered with JSON of another kind."""
    excerpt = json.dumps(value, ensure_ascii=True)[:100]
    return ModelOutputError(f"{where} answered with JSON that is not a completion: {excerpt}", agent_id="models")


def hide_endpoint_details(error: ModelError, where: str | None) -> str:
    """The message for a caller who cannot fix the endpoint.

    Leaves out the endpoint's address, setting names and the request as sent. Keeps what the provider says about the
    request itself. The operator's log has the whole message.
    """
    reported = error.details.get("reported")
    if error.code == "ERR_MODEL_DOWN" and isinstance(reported, str) and reported:
        return "the model's endpoint reported an error: " + _ADDRESS.sub("the model's endpoint", reported)
    if error.code in ("ERR_MODEL_AUTH", "ERR_MODEL_DOWN"):
        return f"{FAILURES[error.code].meaning}; the operator can find the details in the gateway's log"
    message = error.message.replace(error.hint, "")
    public_message = message.replace(where.rstrip("/"), "the model's endpoint") if where else message
    public_message = _ADDRESS.sub("the model's endpoint", _RAW.sub("", public_message))
    return _SETTING.sub("", public_message)


def describe_connection_error(where: str, error: BaseException) -> ModelUnreachableError:
    """The model error for a failed connection, with its cause and what to do."""
    unreached = ModelUnreachableError(f"{where} cannot be reached: {_describe_cause(where, error)}", agent_id="models")
    unreached.remedy = "address"
    return unreached


def _describe_cause(where: str, error: BaseException) -> str:
    """The first known cause in the chain of exceptions, since HTTP clients wrap it several times. Falls back to
    the operating system's message.
    """
    reason, hint, name_hint = "", describe_unreached(where), describe_unreached(where, is_name_unknown=True)
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return f"its name is not known to the DNS{name_hint}; is it spelt right?"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return "it does not speak TLS; is it http:// instead of https://?"
        if isinstance(cause, TimeoutError):
            return f"no connection in time{hint}; is the address right, and does a firewall let it through?"
        if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
            return f"connection refused{hint}; is the model server running?"
        if isinstance(cause, OSError) and cause.errno:
            reason = os.strerror(cause.errno).lower()
        elif type(cause).__name__ == "ServerDisconnectedError":  # aiohttp's, which rules mode does not load
            reason = "it closed the connection without an answer; does it speak HTTP?"
    return reason or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def extract_provider_message(body: bytes) -> str:
    """The provider's own message from the usual error shapes, in one line."""
    return read_error(body).message


def read_error(body: bytes, limit: int = 300) -> ProviderError:
    """Reads the error from a body, with its message in one line of at most `limit` characters.

    Knows OpenAI's object, FastAPI's `detail`, Mistral's flat object, Google's list of one, and the nested error that
    OpenRouter puts into `metadata.raw`.
    """
    text = body[:20_000].decode("utf-8", errors="replace")
    data = _parse_json(text)
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, dict):
        return ProviderError(_join_lines(text, limit))
    error = data.get("error", data.get("detail", data.get("message", data)))
    if isinstance(error, str):  # Ollama's and Mistral's: the rest stands beside it
        parameter, code = _to_text(data.get("param")), _to_text(data.get("code"))
        return ProviderError(_join_lines(error, limit), parameter, code, words=_join_words(data))
    if isinstance(error, dict) and isinstance(error.get("detail"), list):
        error = error["detail"]
    if isinstance(error, list):
        return _read_validation_error(error, limit)
    if not isinstance(error, dict):
        return ProviderError(_join_lines(json.dumps(error), limit))
    code, message = error.get("code"), error.get("message", error)
    inner = _find_inner_error(error, limit)
    number = int(str(code)) if _STATUS.fullmatch(str(code)) else 0
    status = number if 400 <= number <= 599 else None
    if inner is not None:
        line = _join_lines(f"{message}: {inner.message}", limit)
        return ProviderError(line, inner.param, inner.code, status, words=f"{_join_words(error)} {inner.words}")
    error_text = message if isinstance(message, str) else json.dumps(message)
    named = None if status is not None else _to_text(code)
    detail = f"{error_text} ({code})" if code else error_text
    written = error.get("failed_generation")
    parameter = _to_text(error.get("param"))
    return ProviderError(
        _join_lines(detail, limit),
        parameter,
        named,
        status,
        written if isinstance(written, str) else "",
        _read_retry_delay(error.get("details")),
        _join_words(error),
    )


def _read_retry_delay(details: object) -> float | None:
    """The seconds in Google's details of a limit, such as `retryDelay: "27s"`."""
    delays = [one.get("retryDelay") for one in details if isinstance(one, dict)] if isinstance(details, list) else []
    written = [delay[:-1] for delay in delays if isinstance(delay, str) and _SECONDS.fullmatch(delay)]
    return float(written[0]) if written else None


def _join_words(error: Mapping[str, object]) -> str:
    """The codes, kinds and reasons of an error, at most 1,000 characters: `invalid_api_key`, `API_KEY_INVALID`.

    Not those fields that may repeat the request.
    """
    details = error.get("details")
    metadata = error.get("metadata")
    places = [error, *(details if isinstance(details, list) else [details]), metadata]
    named = [
        one.get(name) for one in places if isinstance(one, Mapping) for name in ("code", "type", "status", "reason")
    ]
    flagged = ["flagged"] if isinstance(metadata, Mapping) and metadata.get("reasons") else []
    return " ".join([*(word for word in named if isinstance(word, str)), *flagged])[:1000]


def _find_inner_error(error: Mapping[str, object], limit: int) -> ProviderError | None:
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return read_error(raw.encode(), limit) if isinstance(raw, str) and raw else None


def _read_validation_error(problems: list[object], limit: int) -> ProviderError:
    """The first problem of FastAPI's validation list."""
    first = problems[0] if problems else None
    if not isinstance(first, dict):
        return ProviderError(_join_lines(json.dumps(problems), limit))
    location = first.get("loc")
    parts = [str(part) for part in location if part != "body"] if isinstance(location, list) else []
    message = f"{'.'.join(parts)}: {first.get('msg', '')}" if parts else str(first.get("msg", first))
    return ProviderError(_join_lines(message, limit), ".".join(parts) or None, _to_text(first.get("type")))


def _parse_json(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _to_text(value: object) -> str | None:
    """A name or code as text."""
    return str(value)[:100] if isinstance(value, str | int) and not isinstance(value, bool) and value else None


def _join_lines(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[:limit] + "…"


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds from `retry-after-ms`, or from `Retry-After` as seconds or a date. None when absent or
    unreadable.
    """
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
