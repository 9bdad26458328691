"""Common to all commands: settings, logging, and the gateway in this process."""

import asyncio
import getpass
import inspect
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from dotenv import load_dotenv

from agent.core.settings import Settings
from agent.core.settings.loading import load_settings
from gateway.cli.running_gateway import find_running_gateway
from gateway.cli.terminal_output import show_notice
from gateway.feature_loader import load_features
from gateway.feature_settings import find_unknown_names
from gateway.observe.logs import JsonFormatter, RedactingFormatter, TextFormatter
from gateway.quiet_interrupt import QuietInterrupt

if TYPE_CHECKING:
    from agent.storage.audit import StoredAuditLog
    from agent.storage.sql import SqlClient
    from gateway.bootstrap import Stepgate
    from gateway.bootstrap_database import Storage

T = TypeVar("T")
ForeignServers: TypeAlias = Literal["started", "remembered", "ignored"]
AsyncCommand: TypeAlias = Callable[..., Awaitable[int | None]]


def load_command_settings(**overrides: object) -> Settings:
    """The settings; prints a warning on stderr for every unknown `AGENT_` name."""
    for line in find_unknown_names():
        print(f"warning: {line}", file=sys.stderr)
    read_provider_keys()
    settings = load_settings(**{key: value for key, value in overrides.items() if value is not None})
    set_up_logging(settings)
    return settings


def read_provider_keys() -> None:
    """Loads `.env` into the environment: LiteLLM reads providers' own keys (ANTHROPIC_API_KEY ...) from there."""
    logging.getLogger("dotenv").setLevel(logging.ERROR)  # `find_unknown_names` has already reported unreadable lines
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
    # No line shows the thread, the process or the place of the call, and looking them up was half of a record's cost.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # the documented way to switch off the search for the caller


def print_json(value: object) -> None:
    """Prints what a command returns with `--json`. Models become objects."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=lambda model: model.model_dump(mode="json")))


def format_local_time(at: float) -> str:
    """A time, UTC seconds since 1970, in the time zone of this machine."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def format_utc_time(at: float) -> str:
    """A time, UTC seconds since 1970, as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def get_operator_name() -> str:
    """The person who types this command, for the audit record: their account on this machine."""
    try:
        return f"{getpass.getuser()} (command line)"
    except (KeyError, OSError):  # a container's user may have no name
        return f"uid {os.getuid()} (command line)"


def run_with_gateway(
    work: "Callable[[Stepgate], Awaitable[T]]",
    *,
    foreign: ForeignServers = "ignored",
    skip_broken_rooms: bool = False,
) -> T:
    """Runs `work` on a gateway in this process, which shares the data folder with a running one.

    `foreign` says how to treat foreign MCP servers; most commands do not need them. `skip_broken_rooms` is for commands
    that mend them.
    """
    settings = load_command_settings()
    set_up_logging(settings, logging.WARNING)
    with show_notice("Starting ...") as clear_notice:
        with QuietInterrupt():
            from gateway.bootstrap import build_gateway  # noqa: PLC0415 - all of the engine: seconds that `--help` does not need
        if settings.public_url is None:  # links of answers lead to the gateway that runs, whatever its port
            settings = settings.model_copy(update={"public_url": find_running_gateway(settings)})

        async def run() -> T:
            async with build_gateway(
                settings, recover=False, foreign=foreign, skip_broken_rooms=skip_broken_rooms
            ) as stepgate:
                clear_notice()
                return await work(stepgate)

        return asyncio.run(run())


def gateway_command(
    *, foreign: ForeignServers = "ignored", skip_broken_rooms: bool = False
) -> Callable[[AsyncCommand], Callable[..., None]]:
    """Makes a command of a function that gets a gateway in this process first (see `run_with_gateway`).

    The command line has the other parameters. A number that the function returns is the exit code.
    """

    run = partial(run_with_gateway, foreign=foreign, skip_broken_rooms=skip_broken_rooms)
    return lambda work: _make_command(work, run)


room_command = gateway_command(foreign="remembered", skip_broken_rooms=True)
"""For commands that list or mend rooms: with the tools that foreign servers had, which rooms may name."""


def database_command(work: AsyncCommand) -> Callable[..., None]:
    """Makes a command of a function that gets the database first, without a gateway. Else as `gateway_command`."""
    return _make_command(work, run_with_database)


def run_with_database(work: "Callable[[Database], Awaitable[T]]", settings: Settings | None = None) -> T:
    """Runs `work` on the opened store, which a running gateway shares."""
    chosen = settings or load_command_settings()

    async def run() -> T:
        async with open_database(chosen) as database:
            return await work(database)

    return asyncio.run(run())


@dataclass(frozen=True, slots=True)
class Database:
    """The opened store, for commands that only read or change tables."""

    settings: Settings
    store: "Storage"
    statements: "SqlClient"
    audit: "StoredAuditLog"


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """Opens the store, and closes it at the end."""
    from agent.storage.audit import StoredAuditLog  # noqa: PLC0415 - the store; `--help` needs none
    from gateway.bootstrap_database import build_statements, open_store  # noqa: PLC0415
    from gateway.configured_features import explain_feature_errors  # noqa: PLC0415
    from gateway.feature_events import declare_past_events  # noqa: PLC0415

    with explain_feature_errors():
        declare_past_events(load_features(settings.features))
    store = await open_store(settings)
    try:
        statements = build_statements(store)
        yield Database(settings, store, statements, StoredAuditLog(statements, store.clock))
    finally:
        await store.close()


def _make_command(
    work: AsyncCommand, run: Callable[[Callable[[Any], Awaitable[int | None]]], int | None]
) -> Callable[..., None]:
    signature = inspect.signature(work)
    parameters = list(signature.parameters.values())[1:]

    @wraps(work)
    def command(**options: Any) -> None:
        if code := run(lambda given: work(given, **options)):
            raise SystemExit(code)

    # Typer reads both, and would otherwise take the first parameter for an argument.
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command
