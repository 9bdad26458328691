"""What every command but `serve` needs: the wired gateway in this process, on the same data folder."""

import asyncio
import getpass
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, TypeVar

from dotenv import load_dotenv

from agent.core.config import Settings
from agent.core.config_loading import load_settings, unknown_settings
from gateway.loading import Loading
from gateway.observe.logs import DiscreetFormatter, JsonFormatter, TextFormatter

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate

T = TypeVar("T")


def settings_of_command(**overrides: object) -> Settings:
    """The settings, with a warning on stderr for every `AGENT_` name that is none."""
    for line in unknown_settings():
        print(f"warning: {line}", file=sys.stderr)
    read_provider_keys()
    settings = load_settings(**{key: value for key, value in overrides.items() if value is not None})
    set_up_logging(settings)
    return settings


def read_provider_keys() -> None:
    """Take `.env` into the environment: LiteLLM reads the providers' own keys (ANTHROPIC_API_KEY ...) from there."""
    logging.getLogger("dotenv").setLevel(logging.ERROR)  # `unknown_settings` has named the lines that cannot be read
    load_dotenv(".env")


def set_up_logging(settings: Settings, least: int = logging.NOTSET) -> None:
    """Log to stderr what the settings ask for, and at least of the level `least`."""
    level = max(least, logging.getLevelNamesMapping()[settings.log_level.upper()])
    logging.basicConfig(level=level)
    for handler in logging.getLogger().handlers:
        lines = JsonFormatter() if settings.log_format == "json" else TextFormatter()
        handler.setFormatter(DiscreetFormatter(lines, settings.secret_values()))
    # One line a request is the doors' business; the libraries' own are noise.
    for name in ("httpx", "httpx2", "alembic", "mcp"):
        logging.getLogger(name).setLevel(max(logging.WARNING, level))
    logging.getLogger("mcp.client").setLevel(logging.CRITICAL)  # tracebacks of what the hub says in a line
    logging.getLogger().setLevel(level)


def operator() -> str:
    """Who types this command, for the audit record: their account on this machine."""
    try:
        return f"{getpass.getuser()} (command line)"
    except (KeyError, OSError):  # a container's user may have no name
        return f"uid {os.getuid()} (command line)"


def with_stepgate(
    work: "Callable[[Stepgate], Awaitable[T]]", *, foreign: Literal["started", "remembered", "ignored"] = "ignored"
) -> T:
    """Run `work` on a gateway of this process that shares the data folder with a running one.

    `foreign` says what is done with other people's MCP servers; most commands have no use for them."""
    settings = settings_of_command()
    set_up_logging(settings, logging.WARNING)
    with Loading():
        from gateway.bootstrap import build  # noqa: PLC0415 - all of the engine: half a second that `--help` does not need

    async def run() -> T:
        async with build(settings, recover=False, foreign=foreign) as stepgate:
            return await work(stepgate)

    return asyncio.run(run())
