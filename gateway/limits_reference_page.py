"""Builds the page of all limits: what is limited, by which setting, room or key, and what happens beyond it.

Numbers are read from where they are enforced, so that the page cannot differ from the code.
"""

from typing import NamedTuple

from pydantic import BaseModel

from agent.core.models import Budgets
from agent.core.models.plan import MAX_WRITTEN_STEPS
from agent.core.models.request import MAX_METADATA_ENTRIES, MAX_TOOLS_IN_BODY
from agent.core.settings import PREFIX, Settings
from agent.core.settings.constants import ConstantSettings
from agent.net.client import MAX_REDIRECTS
from agent.storage.api_keys import KeyLimits
from agent.tools.client_tools import MAX_OFFERED_TOOLS
from agent.tools.external_schema import MAX_CHARS
from gateway.access.http_limits import BODY_BYTES_PER_SECOND, MAX_DEPTH
from gateway.access.idempotency import MAX_KEY_CHARS, MAX_STORED_BYTES
from gateway.feature_loader import import_target, load_features
from mcp_tools.client.notifications import MESSAGES_PER_MINUTE
from mcp_tools.client.stdio import LINES_PER_SECOND, LOGGED_LINES_PER_MINUTE, MAX_MESSAGE_BYTES, STDERR_BYTES_PER_SECOND
from mcp_tools.server.sessions import IDLE_SECONDS, MAX_CALLER_SESSIONS, MAX_SESSIONS
from mcp_tools.server.subscriptions import MAX_CALLER_STREAMS


class LimitRow(NamedTuple):
    """One row: a field of `of`, and what happens beyond its value."""

    what: str
    field: str
    beyond: str
    of: type[BaseModel] = Settings

    def to_markdown(self) -> str:
        """The row as Markdown."""
        default = self.of.model_fields[self.field].default
        limit = "none" if default is None else f"{default:,}".removesuffix(".0")
        setting = "fixed" if self.field in ConstantSettings.model_fields else f"`{PREFIX}{self.field.upper()}`"
        where = {Settings: setting, Budgets: f"room: `budgets.{self.field}`"}
        return f"| {self.what} | {limit} | {where.get(self.of, f'key: `{self.field}`')} | {self.beyond} |"


_SLOWER = f"408; each {BODY_BYTES_PER_SECOND:,} bytes add a second"
_PARTIAL = "the run ends with a partial answer from what is known"
_REFUSED = "429 with `Retry-After`"

REQUESTS = (
    LimitRow("request line and headers, bytes", "max_header_bytes", "431, connection closed"),
    LimitRow("time for the headers, seconds", "header_seconds", "408, connection closed"),
    LimitRow("body, bytes", "max_body_bytes", "413"),
    LimitRow("file sent to `/v1/documents`, bytes", "max_upload_bytes", "413"),
    LimitRow("time for the body, seconds", "body_seconds", _SLOWER),
    LimitRow("messages of a request", "max_messages", "413; 400 `array_above_max_length` at the OpenAI door"),
    LimitRow("characters of a prompt or message", "max_message_chars", "413"),
)
ANSWERS = (
    LimitRow("open streams of a key, or of all without one", "max_open_streams", _REFUSED),
    LimitRow("silence of a stream, seconds", "heartbeat_seconds", "a comment is sent to keep the connection open"),
    LimitRow("answer left unread, seconds", "stall_seconds", "disconnected; the run continues: `/v1/runs/{id}/events`"),
    LimitRow("requests a minute", "requests_per_minute", _REFUSED, KeyLimits),
    LimitRow("tokens a minute", "tokens_per_minute", _REFUSED, KeyLimits),
    LimitRow("parallel runs of a key", "parallel_runs", _REFUSED, KeyLimits),
    LimitRow("total tokens of a key", "budget_tokens", "429 `insufficient_quota`", KeyLimits),
    LimitRow("total cost of a key, USD", "budget_usd", "429 `insufficient_quota`", KeyLimits),
    LimitRow(
        "messages of one user to conversations, a minute", "conversation_messages_per_minute", _REFUSED
    ),
)  # fmt: skip
RUNS = (
    LimitRow("parallel runs", "max_concurrent_runs", "further ones wait"),
    LimitRow("waiting runs", "max_queued_runs", "503 with `Retry-After`"),
    LimitRow("wall time of a run, seconds", "max_seconds", _PARTIAL, Budgets),
    LimitRow(
        "steps of a plan",
        "max_steps",
        "the planner is asked again with the reason; 400 for explicit tool calls",
        Budgets,
    ),
    LimitRow("parallel steps", "max_parallel", "further ones wait", Budgets),
    LimitRow("further attempts of a step", "max_retries", "a new plan is made", Budgets),
    LimitRow("new plans", "max_replans", _PARTIAL, Budgets),
    LimitRow("rounds of calls of a small model", "max_rounds", "the answer is written from what is known", Budgets),
    LimitRow("model calls", "max_model_calls", _PARTIAL, Budgets),
    LimitRow("tokens", "max_tokens", _PARTIAL + "; a reply that is being streamed is cut off", Budgets),
    LimitRow("money", "max_cost_usd", _PARTIAL, Budgets),
    LimitRow("sub-agents", "max_subagents", "no further one is started; the agent gets an error", Budgets),
    LimitRow("time for a person's approval, seconds", "approval_seconds", "the approval expires"),
    LimitRow(
        "time of a model call, seconds: until the first token of a stream and between tokens, else in all",
        "llm_timeout_s",
        "before the first token one more attempt with twice the time, then the call fails",
    ),
    LimitRow(
        "reply of a model, tokens",
        "llm_max_tokens",
        "cut off by the model; a stream that goes on is cut off here, with 4 % of tolerance",
    ),
    LimitRow("time of a tool call, seconds", "tool_timeout_s", "`ERR_TOOL_TIMEOUT`; the supervisor decides"),
    LimitRow(
        "further attempts of a call without side effects",
        "tool_max_retries",
        "`ERR_TOOL_FAILED`; the supervisor decides",
    ),
    LimitRow("result of a tool, characters", "tool_output_chars", "cut, and the result says so"),
    LimitRow(
        "pictures, sound and files of a tool result over MCP, bytes",
        "tool_content_bytes",
        "left out, and the result says so",
    ),
    LimitRow("fetched page, bytes", "fetch_max_bytes", "cut, and the result says so"),
    LimitRow("time of a fetch, seconds", "fetch_timeout_s", "the fetch fails"),
    LimitRow("time of a program, seconds", "run_python_timeout_s", "it is killed: `ERR_TOOL_TIMEOUT`"),
    LimitRow("memory of a program, MB", "run_python_memory_mb", "it fails, and the error says so"),
    LimitRow("programs at the same time", "run_python_parallel", "further ones wait"),
    LimitRow("schedules of one owner", "schedules_per_owner", "409"),
    LimitRow("time of an attempt to deliver a webhook, seconds", "webhook_timeout_s", "it is tried again later"),
)
FIXED = (
    ("nesting of objects and lists in a body", MAX_DEPTH, "400"),
    ("tools of a client in a body", MAX_TOOLS_IN_BODY, "413; 400 at the OpenAI door"),
    ("tools of a client that a model is offered", MAX_OFFERED_TOOLS, "400"),
    ("entries of a request's `metadata`", MAX_METADATA_ENTRIES, "413"),
    ("steps of a plan that a person edits", MAX_WRITTEN_STEPS, "413"),
    ("characters of the JSON schema of `response_format`", MAX_CHARS, "400"),
    ("redirects of one fetch", MAX_REDIRECTS, "the fetch fails"),
    ("characters of an `Idempotency-Key`", MAX_KEY_CHARS, "400"),
    ("bytes of a response stored for one", MAX_STORED_BYTES, "a repetition gets a 409 that names the run"),
    ("MCP sessions", MAX_SESSIONS, "the caller with most of them loses the one that was idle longest; 503 without one"),
    ("MCP sessions of a key", MAX_CALLER_SESSIONS, "the one that was idle longest ends; 503 if none is idle"),
    ("streams of `subscriptions/listen` of a key", MAX_CALLER_STREAMS, "an error that says so"),
    ("seconds without a request until an MCP session ends", IDLE_SECONDS, "404; the client opens another"),
    (
        "bytes of a message of a foreign MCP server",
        MAX_MESSAGE_BYTES,
        "the call fails; a program is stopped, and restarted later",
    ),
    ("lines of its standard output, a second", LINES_PER_SECOND, "the server has to wait"),
    ("bytes of its standard error, a second", STDERR_BYTES_PER_SECOND, "the server has to wait"),
    ("lines of its standard error in our log, a minute", LOGGED_LINES_PER_MINUTE, "further ones are only counted"),
    ("log messages of a foreign MCP server in our log, a minute", MESSAGES_PER_MINUTE, "further ones are only counted"),
)


_INTRODUCTION = """# Limits

Generated by `make docs` from `gateway/limits_reference_page.py`. The numbers are the defaults. A setting applies
to the whole gateway; a room's budgets are in its file; a key's limits are options of `stepgate keys create` and
`keys set`. A refusal names its limit and the setting, in the shape of the endpoint. Several gateways on one Redis
(`AGENT_REDIS_URL`) count a key's requests, tokens a minute and parallel runs together. Without it, or while it is
down, each gateway counts for itself: divide the limit by their number. Budgets are in the store and always counted
together; open streams are counted by each process. The number of connections is not limited: put a reverse proxy in
front.
"""


def build_limits_page() -> str:
    """The page as Markdown."""
    parts = [_INTRODUCTION]
    for title, rows in (("Requests", REQUESTS), ("Answers and keys", ANSWERS), ("Runs", RUNS)):
        parts.append(f"\n## {title}\n\n| what | limit | where | beyond it |\n| --- | --- | --- | --- |\n")
        parts += [f"{row.to_markdown()}\n" for row in rows]
    parts.append("\n## Fixed\n\n| what | limit | beyond it |\n| --- | --- | --- |\n")
    parts += [f"| {what} | {limit:,} | {beyond} |\n" for what, limit, beyond in (*FIXED, *_list_limits_of_features())]
    return "".join(parts)


def _list_limits_of_features() -> list[tuple[str, int, str]]:
    """The fixed limits that the shipped features declare."""
    features = load_features("", with_installed=False)
    return [(one.what, import_target(one.number), one.beyond) for feature in features for one in feature.limits]
