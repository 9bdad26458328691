"""`stepgate mcp-servers review`: shows what foreign servers offer that nobody has accepted, and takes the decision.

Everything is shown as it is, with invisible characters escaped: this is the last check before models read it.
"""

import asyncio
import difflib
import json
import shlex
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import BadRequestError, NotFoundError
from gateway.cli.session import get_operator_name, load_command_settings, open_database
from gateway.cli.terminal_output import get_styled_stdout

if TYPE_CHECKING:
    from agent.core.models import JsonObject
    from agent.core.settings import Settings
    from mcp_tools.client.config import McpServerConfig
    from mcp_tools.client.tool_pin_store import PinSettings, PinStore
    from mcp_tools.client.tool_pins import Pin, ServerPins

SHOWN_DIGITS = 12
"""Digits of a digest that are shown: 48 bits are enough, because both texts would also have to look harmless."""


def review(
    server: Annotated[str | None, typer.Argument(help="Only this server.")] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option("--accept", help="Accept this tool as offered; TOOL@DIGEST only if it still has that digest."),
    ] = None,
    accept_all: Annotated[bool, typer.Option("--accept-all", help="Accept all tools that wait for review.")] = False,
    reject: Annotated[list[str] | None, typer.Option("--reject", help="Reject this tool.")] = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Forget what was accepted; all tools need review again.")
    ] = False,
) -> None:
    """Show foreign tools that wait for review, and accept or reject them. A running gateway applies it within
    seconds.
    """
    if (accept or reject or reset) and server is None:
        raise BadRequestError("name the server: stepgate mcp-servers review SERVER --accept TOOL")
    settings = load_command_settings()

    async def work() -> None:
        async with open_pins(settings) as pinning:
            store = pinning.store
            names = _list_configured_names(settings) if server is None else [server]
            if (
                server is not None
                and server not in (configured_names := _list_configured_names(settings))
                and await store.read(server) is None
            ):
                summary = f"there is no MCP server {server!r} in {settings.mcp_servers_path}"
                raise NotFoundError(f"{summary}; known: {', '.join(configured_names) or 'none'}")
            if server is not None and reset:
                await store.reset(server, by=get_operator_name())
                print(f"{server}: reset; what it offers next needs review")
                return
            for name in names:
                await _review_server(store, name, accept or [], reject or [], everything=accept_all)
            if not names:
                print(f"No MCP servers in {settings.mcp_servers_path}.")

    asyncio.run(work())


def describe_servers(settings: "Settings", servers: "Mapping[str, McpServerConfig]") -> dict[str, str]:
    """A short status of each server: how many of its tools are accepted, and which are in quarantine."""

    async def work() -> dict[str, str]:
        async with open_pins(settings) as pinning:
            return {
                name: await _describe_server(pinning, name, off=(config.pin or pinning.policy) == "off")
                for name, config in servers.items()
            }

    return asyncio.run(work())


@asynccontextmanager
async def open_pins(settings: "Settings") -> "AsyncIterator[PinSettings]":
    """Opens the pins in the store, which a running gateway shares."""
    from mcp_tools.client.tool_pin_store import PinSettings, PinStore  # noqa: PLC0415 - the store; `--help` needs none

    async with open_database(settings) as database:
        yield PinSettings(PinStore(database.statements, database.store.clock, database.audit), settings.mcp_pin)


async def _describe_server(pinning: "PinSettings", server: str, *, off: bool) -> str:
    from mcp_tools.client.sanitize import format_names  # noqa: PLC0415
    from mcp_tools.client.tool_pin_store import PinsDamagedError  # noqa: PLC0415 - as above

    if off:
        return "not pinned"
    try:
        row = await pinning.store.read(server)
    except PinsDamagedError:
        return "the pins cannot be read: no tool is used"
    if row is None:
        return "not seen yet"
    withheld = row.pins.withheld_reasons
    summary = f"{len(row.pins.tools) - len(withheld)} accepted"
    return f"{summary}, in quarantine: {format_names(withheld)}" if withheld else summary


def _list_configured_names(settings: "Settings") -> list[str]:
    from mcp_tools.client.config import read_servers  # noqa: PLC0415 - as above

    return list(read_servers(settings.mcp_servers_path)[0])


async def _review_server(
    store: "PinStore", server: str, accept: Iterable[str], reject: Iterable[str], *, everything: bool
) -> None:
    """Applies the requested decisions about one server; without any, shows what waits."""
    row = await store.read(server)
    if row is None:
        print(f"{server}: not seen yet; list its tools: `stepgate mcp-servers test {shlex.quote(server)}`")
        return
    pins = row.pins
    chosen = [(_find_tool(pins, word.partition("@")[0] if word not in pins.tools else word), word) for word in accept]
    if everything:
        chosen += [(name, name) for name in pins.quarantined]
    for tool, word in chosen:
        digest = (
            word.rpartition("@")[2]
            if "@" in word and word != tool
            else (_compute_offered_digest(pins.tools[tool]) or "")
        )
        await store.accept(server, tool, by=get_operator_name(), digest=digest)
        _print_tool(server, tool, pins.tools[tool])
        print(f"accepted {server}/{_escape(tool)}")
    for word in reject:
        tool = _find_tool(pins, word)
        await store.reject(server, tool, by=get_operator_name())
        print(f"rejected {server}/{_escape(tool)}: it is not used")
    if not chosen and not list(reject):
        _print_waiting(server, pins)


def _find_tool(pins: "ServerPins", word: str) -> str:
    """The tool a person means: by its name, or by its name as displayed."""
    for name in pins.tools:
        if word in (name, _escape(name)):
            return name
    tool_names = ", ".join(_escape(name) for name in sorted(pins.tools)) or "none"
    raise NotFoundError(f"there is no tool {word!r}; known: {tool_names}")


def _print_waiting(server: str, pins: "ServerPins") -> None:
    """Prints what waits for review at one server, and the commands to decide."""
    rejected = [name for name, pin in sorted(pins.tools.items()) if pin.state == "rejected"]
    accepted = len(pins.tools) - len(rejected) - len(pins.quarantined)
    summary = f"{len(pins.quarantined)} to review, {accepted} accepted"
    print(f"{server}: {summary}" + (f", rejected: {', '.join(map(_escape, rejected))}" if rejected else ""))
    for name in pins.quarantined:
        pin = pins.tools[name]
        _print_tool(server, name, pin)
        command = f"stepgate mcp-servers review {shlex.quote(server)}"
        word = shlex.quote(f"{_escape(name)}@{_compute_offered_digest(pin)}")
        print(f"  to use it:     {command} --accept {word}")
        print(f"  not to use it: {command} --reject {shlex.quote(_escape(name))}\n")


def _print_tool(server: str, name: str, pin: "Pin") -> None:
    """Prints one tool: the difference between what was accepted and what is offered, and hidden text."""
    if pin.offered is None:
        return
    typer.secho(
        f"\n{_escape(server)}/{_escape(name)} {pin.reason or 'is accepted'} (since {_format_time(pin.at)})",
        bold=True,
        file=get_styled_stdout(),
    )
    print(f"  accepted: {pin.accepted.digest[:SHOWN_DIGITS] if pin.accepted else 'never'}", end="   ")
    print(f"offered: {_compute_offered_digest(pin)}")
    before = list(_to_lines(pin.accepted.parts)) if pin.accepted else []
    after = list(_to_lines(pin.offered.parts))
    if before == after:
        print("  The offer equals what was accepted, but it was different in between.")
    for line in difflib.unified_diff(before, after, "accepted", "offered", n=2, lineterm=""):
        colour = typer.colors.GREEN if line.startswith("+") else typer.colors.RED if line.startswith("-") else None
        typer.secho(f"  {line}", fg=colour, file=get_styled_stdout())
    for finding in _find_hidden_text(pin.offered.parts):
        typer.secho(f"  ! hidden from people: {_escape(finding)}", fg=typer.colors.YELLOW, file=get_styled_stdout())


def _to_lines(parts: "JsonObject") -> Iterator[str]:
    """A definition as comparable lines, without invisible or terminal control characters."""
    for part, value in parts.items():
        if isinstance(value, str):
            # Split only at "\n": other line breaks that Python knows could hide a part of the text.
            yield from (f"{part}: {_escape(line)}" for line in value.split("\n"))
        else:
            text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
            yield from (f"{part}: {_escape(line)}" for line in text.split("\n"))


def _find_hidden_text(value: object) -> Iterator[str]:
    """Yields the text that is removed before models read the definition."""
    from mcp_tools.client.sanitize import sanitize_text  # noqa: PLC0415 - as above

    if isinstance(value, str):
        yield from sanitize_text(value).hidden
    elif isinstance(value, list):
        for item in value:
            yield from _find_hidden_text(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _find_hidden_text(key)
            yield from _find_hidden_text(item)


def _compute_offered_digest(pin: "Pin") -> str | None:
    return pin.offered.digest[:SHOWN_DIGITS] if pin.offered else None


def _escape(text: str) -> str:
    from mcp_tools.client.sanitize import escape_invisible  # noqa: PLC0415 - as above

    return escape_invisible(text)


def _format_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
