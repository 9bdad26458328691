"""Common to all commands: settings, logging, and the gateway in this process."""

import asyncio
import getpass
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, TypeVar

from dotenv import load_dotenv

from agent.core.settings import Settings
from agent.core.settings.loading import find_unknown_settings, load_settings
from gateway.observe.logs import JsonFormatter, RedactingFormatter, TextFormatter
from gateway.quiet_interrupt import QuietInterrupt

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate

T = TypeVar("T")


def load_command_settings(**overrides: object) -> Settings:
    """Returns the settings; prints a warning on stderr for every unknown `AGENT_` name."""
    for line in find_unknown_settings():
        print(f"warning: {line}", file=sys.stderr)
    read_provider_keys()
    settings = load_settings(**{key: value for key, value in overrides.items() if value is not None})
    set_up_logging(settings)
    return settings


def read_provider_keys() -> None:
    """Loads `.env` into the environment: LiteLLM reads providers' own keys (ANTHROPIC_API_KEY ...) from there."""
    logging.getLogger("dotenv").setLevel(logging.ERROR)  # `find_unknown_settings` has already reported unreadable lines
    load_dotenv(".env")


def set_up_logging(settings: Settings, least: int = logging.NOTSET) -> None:
    """Logs to stderr at the configured level, and at least at the level `least`."""
    level = max(least, logging.getLevelNamesMapping()[settings.log_level.upper()])
    logging.basicConfig(level=level)
    for handler in logging.getLogger().handlers:
        lines = JsonFormatter() if settings.log_format == "json" else TextFormatter()
        handler.setFormatter(RedactingFormatter(lines, settings.list_secrets()))
    # The access log has one line for each request; the libraries' own lines would repeat it.
    for name in ("httpx", "httpx2", "alembic", "mcp"):
        logging.getLogger(name).setLevel(max(logging.WARNING, level))
    logging.getLogger("mcp.client").setLevel(logging.CRITICAL)  # the hub reports the same errors in one line
    logging.getLogger().setLevel(level)


def get_operator_name() -> str:
    """Returns who types this command, for the audit record: their account on this machine."""
    try:
        return f"{getpass.getuser()} (command line)"
    except (KeyError, OSError):  # a container's user may have no name
        return f"uid {os.getuid()} (command line)"


def run_with_gateway(
    work: "Callable[[Stepgate], Awaitable[T]]",
    *,
    foreign: Literal["started", "remembered", "ignored"] = "ignored",
    skip_broken_rooms: bool = False,
) -> T:
    """Runs `work` on a gateway in this process, which shares the data folder with a running one.

    `foreign` says how to treat foreign MCP servers; most commands do not need them. `skip_broken_rooms` is for commands
    that mend them.
    """
    settings = load_command_settings()
    set_up_logging(settings, logging.WARNING)
    with QuietInterrupt():
        from gateway.bootstrap import build_gateway  # noqa: PLC0415 - all of the engine: half a second that `--help` does not need

    async def run() -> T:
        async with build_gateway(
            settings, recover=False, foreign=foreign, skip_broken_rooms=skip_broken_rooms
        ) as stepgate:
            return await work(stepgate)

    return asyncio.run(run())
