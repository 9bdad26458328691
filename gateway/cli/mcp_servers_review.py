"""`stepgate mcp-servers review`: what foreign servers offer that nobody has accepted, and a person's word on it.

Everything is shown as it is, with what cannot be seen written out: this is the last look before models read it.
"""

import asyncio
import difflib
import json
import shlex
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import BadRequestError, NotFoundError
from gateway.cli.session import operator, settings_of_command

if TYPE_CHECKING:
    from agent.core.config import Settings
    from agent.core.models import JsonObject
    from mcp_tools.mcp_config import McpServerConfig
    from mcp_tools.pins import Pin, ServerPins
    from mcp_tools.pins_store import Pinning, PinStore

SHOWN_DIGITS = 12
"""Digits of a digest that stand for it: nobody makes two texts that agree in 48 bits and also deceive."""


def review(
    server: Annotated[str | None, typer.Argument(help="Only this server.")] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option("--accept", help="Accept what this tool offers; TOOL@DIGEST only while it is that."),
    ] = None,
    accept_all: Annotated[bool, typer.Option("--accept-all", help="Accept everything that waits.")] = False,
    reject: Annotated[list[str] | None, typer.Option("--reject", help="Do not use this tool.")] = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Forget what was accepted of the server: all of it is to be reviewed.")
    ] = False,
) -> None:
    """Show what foreign tools offer that was not accepted, and accept or reject it. A gateway that is running knows of
    it within seconds."""
    if (accept or reject or reset) and server is None:
        raise BadRequestError("name the server: stepgate mcp-servers review SERVER --accept TOOL")
    settings = settings_of_command()

    async def work() -> None:
        async with opened_pins(settings) as pinning:
            store = pinning.store
            names = _names(settings) if server is None else [server]
            if server is not None and server not in (known := _names(settings)) and await store.read(server) is None:
                told = f"there is no MCP server {server!r} in {settings.mcp_servers_path}"
                raise NotFoundError(f"{told}; known: {', '.join(known) or 'none'}")
            if server is not None and reset:
                await store.reset(server, by=operator())
                print(f"{server}: forgotten; what it offers next is to be reviewed")
                return
            for name in names:
                await _review(store, name, accept or [], reject or [], everything=accept_all)
            if not names:
                print(f"No MCP servers in {settings.mcp_servers_path}.")

    asyncio.run(work())


def standings(settings: "Settings", servers: "Mapping[str, McpServerConfig]") -> dict[str, str]:
    """A few words for each server: how many of its tools are accepted, and which are in quarantine."""

    async def work() -> dict[str, str]:
        async with opened_pins(settings) as pinning:
            return {
                name: await _standing(pinning, name, off=(config.pin or pinning.policy) == "off")
                for name, config in servers.items()
            }

    return asyncio.run(work())


@asynccontextmanager
async def opened_pins(settings: "Settings") -> "AsyncIterator[Pinning]":
    """The pins in the store, which a running gateway shares."""
    from agent.core.audit import StoredAudit  # noqa: PLC0415 - the store; `--help` needs none
    from gateway.stores import open_store, statements_of  # noqa: PLC0415
    from mcp_tools.pins_store import Pinning, PinStore  # noqa: PLC0415

    store = await open_store(settings)
    try:
        statements = statements_of(store)
        yield Pinning(PinStore(statements, time.time, StoredAudit(statements, time.time)), settings.mcp_pin)
    finally:
        await store.close()


async def _standing(pinning: "Pinning", server: str, *, off: bool) -> str:
    from mcp_tools.pins_store import PinsDamagedError  # noqa: PLC0415 - as above
    from mcp_tools.sanitize import names_of  # noqa: PLC0415

    if off:
        return "not pinned"
    try:
        row = await pinning.store.read(server)
    except PinsDamagedError:
        return "pins cannot be read: none is used"
    if row is None:
        return "not seen yet"
    withheld = row.pins.withheld
    told = f"{len(row.pins.tools) - len(withheld)} accepted"
    return f"{told}, in quarantine: {names_of(withheld)}" if withheld else told


def _names(settings: "Settings") -> list[str]:
    from mcp_tools.mcp_config import read_servers  # noqa: PLC0415 - as above

    return list(read_servers(settings.mcp_servers_path)[0])


async def _review(
    store: "PinStore", server: str, accept: Iterable[str], reject: Iterable[str], *, everything: bool
) -> None:
    """Decide what was asked to be decided about one server; else show what waits."""
    row = await store.read(server)
    if row is None:
        print(f"{server}: not seen yet; ask it for its tools: `stepgate mcp-servers test {shlex.quote(server)}`")
        return
    pins = row.pins
    chosen = [(_tool(pins, word.partition("@")[0] if word not in pins.tools else word), word) for word in accept]
    if everything:
        chosen += [(name, name) for name in pins.waiting]
    for tool, word in chosen:
        digest = word.rpartition("@")[2] if "@" in word and word != tool else (_offered(pins.tools[tool]) or "")
        await store.accept(server, tool, by=operator(), digest=digest)
        _show(server, tool, pins.tools[tool])
        print(f"accepted {server}/{_escaped(tool)}")
    for word in reject:
        tool = _tool(pins, word)
        await store.reject(server, tool, by=operator())
        print(f"rejected {server}/{_escaped(tool)}: it is not used")
    if not chosen and not list(reject):
        _tell(server, pins)


def _tool(pins: "ServerPins", word: str) -> str:
    """The tool a person means: by its name, or by how its name is shown."""
    for name in pins.tools:
        if word in (name, _escaped(name)):
            return name
    known = ", ".join(_escaped(name) for name in sorted(pins.tools)) or "none"
    raise NotFoundError(f"there is no tool {word!r}; known: {known}")


def _tell(server: str, pins: "ServerPins") -> None:
    """What waits of one server, whole, and how to decide."""
    rejected = [name for name, pin in sorted(pins.tools.items()) if pin.state == "rejected"]
    accepted = len(pins.tools) - len(rejected) - len(pins.waiting)
    told = f"{len(pins.waiting)} to review, {accepted} accepted"
    print(f"{server}: {told}" + (f", rejected: {', '.join(map(_escaped, rejected))}" if rejected else ""))
    for name in pins.waiting:
        pin = pins.tools[name]
        _show(server, name, pin)
        command = f"stepgate mcp-servers review {shlex.quote(server)}"
        word = shlex.quote(f"{_escaped(name)}@{_offered(pin)}")
        print(f"  to use it:     {command} --accept {word}")
        print(f"  not to use it: {command} --reject {shlex.quote(_escaped(name))}\n")


def _show(server: str, name: str, pin: "Pin") -> None:
    """One tool: the difference between what was accepted and what is offered, and what hides in it."""
    if pin.offered is None:
        return
    typer.secho(f"\n{_escaped(server)}/{_escaped(name)} {pin.why or 'is accepted'} (since {_when(pin.at)})", bold=True)
    print(f"  accepted: {pin.accepted.digest[:SHOWN_DIGITS] if pin.accepted else 'never'}", end="   ")
    print(f"offered: {_offered(pin)}")
    before = list(_lines(pin.accepted.parts)) if pin.accepted else []
    after = list(_lines(pin.offered.parts))
    if before == after:
        print("  It offers again what was accepted; in between it offered something else.")
    for line in difflib.unified_diff(before, after, "accepted", "offered", n=2, lineterm=""):
        colour = typer.colors.GREEN if line.startswith("+") else typer.colors.RED if line.startswith("-") else None
        typer.secho(f"  {line}", fg=colour)
    for said in _hidden(pin.offered.parts):
        typer.secho(f"  ! hidden from people: {_escaped(said)}", fg=typer.colors.YELLOW)


def _lines(parts: "JsonObject") -> Iterator[str]:
    """A definition as lines that can be compared and read; nothing in them is invisible, or obeyed by a terminal."""
    for part, value in parts.items():
        if isinstance(value, str):
            # No line break but ours: some that Python knows would hide a part of a text from the eye.
            yield from (f"{part}: {_escaped(line)}" for line in value.split("\n"))
        else:
            text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
            yield from (f"{part}: {_escaped(line)}" for line in text.split("\n"))


def _hidden(value: object) -> Iterator[str]:
    """What is taken out of the texts before models read them."""
    from mcp_tools.sanitize import cleaned  # noqa: PLC0415 - as above

    if isinstance(value, str):
        yield from cleaned(value).hidden
    elif isinstance(value, list):
        for item in value:
            yield from _hidden(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _hidden(key)
            yield from _hidden(item)


def _offered(pin: "Pin") -> str | None:
    return pin.offered.digest[:SHOWN_DIGITS] if pin.offered else None


def _escaped(text: str) -> str:
    from mcp_tools.sanitize import escaped  # noqa: PLC0415 - as above

    return escaped(text)


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
