"""`stepgate mcp install CLIENT`: adds Stepgate to the configuration file of an IDE or assistant."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.cli.running_gateway import find_running_gateway, get_configured_url
from gateway.cli.session import load_command_settings
from gateway.ide_config import CLIENTS, Entry, IdeClient, find_config_file, install_entry

KEY_VARIABLE = "STEPGATE_API_KEY"


def install(
    client: Annotated[str, typer.Argument(help=f"One of {', '.join(CLIENTS)}.")],
    url: Annotated[
        str, typer.Option(help="The gateway's address; unset: that of the running one, or of the next at AGENT_PORT.")
    ] = "",
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Let the client start `stepgate mcp` itself; needs no running gateway.")
    ] = False,
    key: Annotated[
        bool, typer.Option("--key", help=f"Send an API key, which the client takes from {KEY_VARIABLE} or asks for.")
    ] = False,
    toolsets: Annotated[str, typer.Option(help="The toolsets that are listed, such as default,schedules.")] = "",
    project: Annotated[
        Path | None, typer.Option(help="Write the file of this project's folder, not the user's.", file_okay=False)
    ] = None,
    file: Annotated[Path | None, typer.Option(help="Write this file, such as that of another edition.")] = None,
    name: Annotated[str, typer.Option(help="The entry's name.")] = "stepgate",
    force: Annotated[bool, typer.Option("--force", help="Replace an entry of this name that differs.")] = False,
    only_print: Annotated[bool, typer.Option("--print", help="Print the entry; write nothing.")] = False,
) -> None:
    """Add Stepgate to a client's configuration file; everything else in the file stays as it is."""
    known_client = CLIENTS.get(client)
    if known_client is None:
        raise typer.BadParameter(f"there is no client {client!r}; known: {', '.join(CLIENTS)}")
    settings = load_command_settings()
    needs_address = not (url or stdio) and known_client.takes_urls
    running = find_running_gateway(settings) if needs_address else None
    there = url or running or get_configured_url(settings)
    entry = _make_entry(known_client, settings, url, there, stdio=stdio, key=key, toolsets=toolsets)
    if only_print:
        _print_entry(known_client, name, entry)
        return
    path = file or find_config_file(known_client, project)
    if path is None:
        raise ConfigError(f"{known_client.title} has no file for projects; leave --project out")
    done = install_entry(known_client, path, name, entry, force=force)
    print(f"{known_client.title}: {name} {_describe(done.outcome)} {done.path}")
    if needs_address and running is None:
        print(f"No gateway answers at {there} now; if it has another address, install again with --url and --force.")
    for line in _list_hints(known_client, entry, is_running=running is not None):
        print(line)


def _make_entry(
    client: IdeClient, settings: Settings, url: str, there: str, *, stdio: bool, key: bool, toolsets: str
) -> Entry:
    if url and (stdio or not client.takes_urls):
        why = "choose either --url or --stdio" if stdio else f"{client.title}'s file only starts programs"
        raise ConfigError(f"--url: {why}; leave it out, and the client starts `stepgate mcp`")
    if stdio or not client.takes_urls:
        if key:
            raise ConfigError("--key: a program that the client starts needs no key; leave it out")
        words = ("--toolsets", toolsets) if toolsets else ()
        folder = {"AGENT_DATA_DIR": str(settings.data_dir.resolve())}
        return Entry(command=(find_program(), "mcp", *words), env=folder)
    address = _complete(there) + (f"?toolsets={toolsets}" if toolsets else "")
    if not key:
        return Entry(url=address)
    value = os.environ.get(KEY_VARIABLE, "")
    if not client.reads_variables and not value:
        raise ConfigError(f"--key: {client.title} reads no variables, so set {KEY_VARIABLE} for this command")
    return Entry(url=address, key_variable=KEY_VARIABLE, key=value)


def _complete(url: str) -> str:
    """The address of the MCP endpoint; `/mcp` is added to an address without a path."""
    if "://" not in url:
        raise ConfigError(f"--url: {url!r} is not an address such as https://gateway.example/mcp")
    _, _, rest = url.partition("://")
    return url if "/" in rest.rstrip("/") else f"{url.rstrip('/')}/mcp"


def find_program() -> str:
    """The absolute path of the `stepgate` command: clients start programs without the shell's PATH."""
    beside = Path(sys.executable).with_name("stepgate.exe" if sys.platform == "win32" else "stepgate")
    program = str(beside) if beside.exists() else shutil.which("stepgate")
    if program is None:
        raise ConfigError("the program `stepgate` is not on PATH; install Stepgate, or leave --stdio out")
    return str(Path(program).absolute())


def _print_entry(client: IdeClient, name: str, entry: Entry) -> None:
    inputs = client.inputs(entry)
    whole = {} if inputs is None else {"inputs": [inputs]}
    print(json.dumps({client.path[0]: {name: client.build(entry)}, **whole}, indent=2, ensure_ascii=False))


def _describe(outcome: str) -> str:
    return {"added": "was added to", "replaced": "was replaced in", "unchanged": "is already in"}[outcome]


def _list_hints(client: IdeClient, entry: Entry, *, is_running: bool) -> list[str]:
    hints = []
    if entry.url and not entry.key_variable:
        start = "If the gateway" if is_running else "Start the gateway with `stepgate serve`; if it"
        hints.append(f"{start} requires keys, install again with --key --force.")
    if entry.key_variable and client.inputs(entry) is not None:
        hints.append("It asks for the API key once and keeps it.")
    elif entry.key_variable and client.reads_variables:
        hints.append(f"Set {KEY_VARIABLE} in the environment in which {client.title} starts.")
    elif entry.key_variable:
        hints.append("The file now contains the API key: do not share it.")
    return [*hints, client.next_step]
