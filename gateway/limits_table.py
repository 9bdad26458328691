"""The page of every limit: what is bounded, by which setting, room or key, and what happens beyond it.

Numbers are read where they are enforced, so that the page cannot say another one than the code does."""

from typing import NamedTuple

from pydantic import BaseModel

from agent.core.config import PREFIX, Settings
from agent.core.keys import KeyLimits
from agent.core.models import Budgets
from agent.core.net.client import MAX_REDIRECTS
from gateway.doors.body import MAX_DEPTH
from gateway.idempotency import MAX_ANSWER_BYTES, MAX_LENGTH
from gateway.limits import BODY_BYTES_PER_SECOND
from mcp_tools.hub_said import MESSAGES_A_MINUTE
from mcp_tools.server_sessions import MAX_SESSIONS
from mcp_tools.stdio import LINES_A_SECOND, LOGGED_A_MINUTE, LONGEST_MESSAGE, STDERR_BYTES_A_SECOND


class Bound(NamedTuple):
    """One row: a field of `of`, or a number nobody can set, and what happens beyond it."""

    what: str
    field: str
    beyond: str
    of: type[BaseModel] = Settings

    def row(self) -> str:
        """As Markdown."""
        found = self.of.model_fields[self.field].default
        limit = "none" if found is None else f"{found:,}".removesuffix(".0")
        where = {Settings: f"`{PREFIX}{self.field.upper()}`", Budgets: f"room: `budgets.{self.field}`"}
        return f"| {self.what} | {limit} | {where.get(self.of, f'key: `{self.field}`')} | {self.beyond} |"


_SLOWER = f"408; each {BODY_BYTES_PER_SECOND:,} bytes of it give a second more"
_PARTIAL = "what is known is the answer, called partial"
_REFUSED = "429 with `Retry-After`"

REQUESTS = (
    Bound("request line and headers, bytes", "max_header_bytes", "431, connection closed"),
    Bound("time for the headers, seconds", "header_seconds", "408, connection closed"),
    Bound("body, bytes", "max_body_bytes", "413"),
    Bound("file sent to `/v1/documents`, bytes", "max_upload_bytes", "413"),
    Bound("time for the body, seconds", "body_seconds", _SLOWER),
    Bound("messages of a request", "max_messages", "413; 400 `array_above_max_length` at the OpenAI door"),
    Bound("characters of a prompt or message", "max_message_chars", "413"),
)
ANSWERS = (
    Bound("open streams of a key, or of all without one", "max_open_streams", _REFUSED),
    Bound("silence of a stream, seconds", "heartbeat_seconds", "a comment is sent, so that proxies keep it open"),
    Bound("answer left unread, seconds", "stall_seconds", "connection cut; the run goes on: `/v1/runs/{id}/events`"),
    Bound("requests a minute", "requests_per_minute", _REFUSED, KeyLimits),
    Bound("tokens a minute", "tokens_per_minute", _REFUSED, KeyLimits),
    Bound("runs of a key at the same time", "parallel_runs", _REFUSED, KeyLimits),
    Bound("tokens of a key in all", "budget_tokens", "429 `insufficient_quota`", KeyLimits),
    Bound("money of a key in all", "budget_usd", "429 `insufficient_quota`", KeyLimits),
    Bound(
        "messages of one user to conversations, a minute", "conversation_messages_per_minute", _REFUSED
    ),
)  # fmt: skip
RUNS = (
    Bound("runs carried out at a time", "max_concurrent_runs", "further ones wait"),
    Bound("runs that wait", "max_queued_runs", "503 with `Retry-After`"),
    Bound("wall time of a run, seconds", "max_seconds", _PARTIAL, Budgets),
    Bound("steps of a plan", "max_steps", "the planner is told and asked again; 400 for explicit tool calls", Budgets),
    Bound("steps at the same time", "max_parallel", "further ones wait", Budgets),
    Bound("tries of a step after its first", "max_retries", "the plan is made anew", Budgets),
    Bound("new plans", "max_replans", _PARTIAL, Budgets),
    Bound("model calls", "max_model_calls", _PARTIAL, Budgets),
    Bound("tokens", "max_tokens", _PARTIAL, Budgets),
    Bound("money", "max_cost_usd", _PARTIAL, Budgets),
    Bound("sub-agents", "max_subagents", "no further one is started; the agent is told", Budgets),
    Bound("time for a person's approval, seconds", "approval_seconds", "the approval expires"),
    Bound("time of a model call, seconds", "llm_timeout_s", "tried once more with twice the time, then it failed"),
    Bound("reply of a model, tokens", "llm_max_tokens", "cut off by the model"),
    Bound("time of a tool call, seconds", "tool_timeout_s", "`ERR_TOOL_TIMEOUT`; the supervisor decides"),
    Bound("tries of a harmless call that broke", "tool_max_retries", "`ERR_TOOL_FAILED`; the supervisor decides"),
    Bound("result of a tool, characters", "tool_output_chars", "cut, and the result says so"),
    Bound("its pictures, sound and files over MCP, bytes", "tool_content_bytes", "left out, and the result says so"),
    Bound("page that is fetched, bytes", "fetch_max_bytes", "cut, and the result says so"),
    Bound("time of a fetch, seconds", "fetch_timeout_s", "the fetch fails"),
)
FIXED = (
    ("objects and lists within one another in a body", MAX_DEPTH, "400"),
    ("redirects of one fetch", MAX_REDIRECTS, "the fetch fails"),
    ("characters of an `Idempotency-Key`", MAX_LENGTH, "400"),
    ("bytes of an answer kept under one", MAX_ANSWER_BYTES, "sent again, the request is a 409 that names its run"),
    ("MCP sessions", MAX_SESSIONS, "refused by the MCP SDK"),
    ("bytes of a message of a foreign MCP server (stdio)", LONGEST_MESSAGE, "cut off, and started again later"),
    ("lines of its standard output, a second", LINES_A_SECOND, "it waits"),
    ("bytes of its standard error, a second", STDERR_BYTES_A_SECOND, "it waits"),
    ("lines of its standard error in our log, a minute", LOGGED_A_MINUTE, "they are counted"),
    ("log messages of a foreign MCP server in our log, a minute", MESSAGES_A_MINUTE, "they are counted"),
)


def limits_table() -> str:
    """The page, as Markdown."""
    lines = [
        "# Limits",
        "",
        "Made by `make docs` from `gateway/limits_table.py`; the numbers are the defaults. A setting holds for the",
        "whole gateway, a room's budgets stand in its file, a key's limits are given to `stepgate keys create`. A",
        "refusal names its limit and the setting, in the shape of the door. Several gateways on one Redis",
        "(`AGENT_REDIS_URL`) count a key's requests and tokens a minute and its runs at the same time together.",
        "Without it, or while it is down, each counts for itself, and a key has its limit once for each: divide it by",
        "their number. Budgets are in the store and always counted together; open streams take the room of one process",
        "and never are. The number of connections is not limited: put a reverse proxy in front.",
    ]
    for title, bounds in (("Requests", REQUESTS), ("Answers and keys", ANSWERS), ("Runs", RUNS)):
        lines += ["", f"## {title}", "", "| what | limit | where | beyond it |", "| --- | --- | --- | --- |"]
        lines += [bound.row() for bound in bounds]
    lines += ["", "## Fixed", "", "| what | limit | beyond it |", "| --- | --- | --- |"]
    lines += [f"| {what} | {limit:,} | {beyond} |" for what, limit, beyond in FIXED]
    return "\n".join(lines) + "\n"
