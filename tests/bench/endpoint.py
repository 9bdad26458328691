"""The configured model as `make eval-bfcl`, `eval-peers` and `eval-chat` reach it: bare, and through a gateway.

Both are asked in the same way, over `/chat/completions`, with temperature 0 and a fixed seed.
"""

import contextlib
import datetime as dt
import json
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ConfigDict

from agent.core.errors import ConfigError
from agent.core.models import Usage
from agent.core.settings import PREFIX, Settings
from agent.llm.replies import read_usage
from gateway.features.evaluation.conversation import SEED, TURN_SECONDS
from gateway.features.evaluation.world import list_settings
from tests.support.processes import ROOT, ColdGatewayProcess

MAX_TOKENS = 1024
"""Longest reply in tokens, in every column: a small model that repeats itself would fill its whole context."""
LIST_SECONDS = 30.0


class Endpoint(NamedTuple):
    """An OpenAI-compatible base URL, a model there, and the bearer key."""

    url: str
    model: str
    key: str = ""

    @property
    def host(self) -> str:
        """The host and port, without credentials that a URL may hold."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    def open_client(self) -> httpx.AsyncClient:
        """A client whose paths begin at the base URL. The caller closes it.

        Each call has a connection of its own: some servers of models close a kept one just as it is used again."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        limits = httpx.Limits(max_keepalive_connections=0)
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=TURN_SECONDS, limits=limits)


class FunctionCall(BaseModel):
    """A call of a client's tool; `arguments` is the JSON text that the model wrote."""

    model_config = ConfigDict(frozen=True)

    name: str
    arguments: str


class ChatReply(BaseModel):
    """A completion, or why there is none: `error` with the HTTP status, 0 where nothing came."""

    model_config = ConfigDict(frozen=True)

    text: str = ""
    calls: tuple[FunctionCall, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0
    first_token_seconds: float | None = None
    """From the request to the first visible character, of streams."""
    run_status: str = ""
    """The status of the gateway's run."""
    http_status: int = 200
    error: str = ""


def read_endpoint(settings: Settings) -> Endpoint:
    """The configured model. Raises `ConfigError` without an address, and where no model is named and none is listed."""
    if settings.llm_base_url is None:
        raise ConfigError("there is no model to measure: set AGENT_LLM_BASE_URL and AGENT_MODEL_FAST")
    url = settings.llm_base_url.rstrip("/")
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key is not None else ""
    if settings.model_fast is not None and any(sign in settings.model_fast for sign in ",@"):
        raise ConfigError(
            f"AGENT_MODEL_FAST names several models or endpoints, {settings.model_fast!r}: name one model"
        )
    if settings.model_fast is not None:
        return Endpoint(url, settings.model_fast, key)
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        listed = httpx.get(f"{url}/models", headers=headers, timeout=LIST_SECONDS).raise_for_status().json()["data"]
        return Endpoint(url, str(listed[0]["id"]), key)
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
        raise ConfigError(f"{url} does not list its models: set AGENT_MODEL_FAST") from error


def describe_subject(endpoint: Endpoint, **more: Any) -> dict[str, Any]:
    """Describes what is measured: kept results are only gone on with where this is the same."""
    subject = {"model": endpoint.model, "host": endpoint.host, "commit": read_commit()}
    return {**subject, "max_tokens": MAX_TOKENS, "seed": SEED, **more}


def read_commit() -> str:
    """The commit of this checkout, with `-dirty` if files were changed since; `unknown` without Git."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def format_heading(command: str, endpoint: Endpoint) -> str:
    """The line above a table: when, by which command, with which model, where it is served, and which commit."""
    day = dt.datetime.now(dt.UTC).date()
    model = f"model {endpoint.model} at {endpoint.host}, temperature 0, seed {SEED}"
    return f"{day}: {command}; {model}; commit {read_commit()}"


@contextlib.contextmanager
def start_gateway(settings: Settings, rooms: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yields the address of a gateway with these settings and an empty data folder. `rooms` are YAML by id."""
    given = {name.removeprefix(PREFIX).lower(): value for name, value in list_settings(settings).items()}
    with tempfile.TemporaryDirectory(prefix="stepgate-eval-") as name:
        folder = Path(name)
        own = {"web": "false", "require_key": "never", "model_probe": "off", "open_webui": "never"}
        if rooms:
            own["rooms_dir"] = str(folder / "rooms")
            (folder / "rooms").mkdir()
            for room, text in rooms.items():
                (folder / "rooms" / f"{room}.yaml").write_text(text, "utf-8")
        # As a gateway is without a profile of its model, unless the settings say otherwise.
        with ColdGatewayProcess(folder / "data", **{"model_profile": "auto", **given, **own}) as gateway:
            yield gateway.url


def build_body(model: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """A request's body."""
    body = {"model": model, "messages": messages, "temperature": 0, "seed": SEED, "max_tokens": MAX_TOKENS}
    return {**body, "tools": tools} if tools else body


async def complete(client: httpx.AsyncClient, body: dict[str, Any]) -> ChatReply:
    """Asks for a whole completion. Failures are replies with an `error`."""
    started = monotonic()
    try:
        response = await client.post("chat/completions", json=body)
        if not response.is_success:
            return ChatReply(http_status=response.status_code, error=response.text[:500], seconds=monotonic() - started)
        return read_reply(response.json(), monotonic() - started)
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
        return ChatReply(http_status=0, error=repr(error)[:500], seconds=monotonic() - started)


def read_reply(reply: dict[str, Any], seconds: float) -> ChatReply:
    """Parses a completion. Raises `LookupError` or `TypeError` if it is none."""
    message = reply["choices"][0]["message"]
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    return ChatReply(
        text=message.get("content") or "",
        calls=tuple(FunctionCall(name=one["name"], arguments=one["arguments"]) for one in functions),
        usage=read_usage(reply.get("usage"), reply.get("timings")),
        seconds=seconds,
        run_status=str((reply.get("stepgate") or {}).get("status", "")),
    )


async def stream(client: httpx.AsyncClient, body: dict[str, Any]) -> ChatReply:
    """Asks for a stream and times its first visible character. Failures are replies with an `error`."""
    started = monotonic()
    text, error = "", ""
    first: float | None = None
    try:
        async with client.stream("POST", "chat/completions", json={**body, "stream": True}) as response:
            if not response.is_success:
                refusal = (await response.aread()).decode("utf-8", "replace")[:500]
                return ChatReply(http_status=response.status_code, error=refusal, seconds=monotonic() - started)
            async for chunk in _read_chunks(response):
                if chunk.get("error"):
                    error = json.dumps(chunk["error"])[:500]
                for choice in chunk.get("choices") or ():
                    text += (choice.get("delta") or {}).get("content") or ""
                if first is None and text.strip():
                    first = monotonic() - started
    except (httpx.HTTPError, ValueError, TypeError, AttributeError) as failure:
        return ChatReply(text=text, http_status=0, error=repr(failure)[:500], seconds=monotonic() - started)
    return ChatReply(text=text, seconds=monotonic() - started, first_token_seconds=first, error=error)


async def _read_chunks(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        data = line.removeprefix("data:").strip()
        if line.startswith("data:") and data != "[DONE]":
            yield json.loads(data)
