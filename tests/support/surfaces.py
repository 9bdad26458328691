"""What the gateway shows to programs and people: the OpenAPI document, the MCP lists, the help of every command.

`python -m tests.support.surfaces` compares them with the recorded ones in `tests/support/data/surfaces`;
`--record` writes them. A move of code changes none of them by a byte.
"""

import asyncio
import difflib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mcp import Client
from pydantic import BaseModel
from typer.main import get_command
from typer.testing import CliRunner

from agent.core.settings import Settings
from gateway.app import create_app
from gateway.cli import app as commands
from gateway.cli.groups import DeferredCommand
from tests.support.serving import serving

RECORDED = Path(__file__).parent / "data" / "surfaces"
COLUMNS = 100
"""The width at which helps are printed."""


def render_openapi() -> str:
    """The OpenAPI document of the default settings."""
    return _to_json(create_app(_make_settings(Path("data"))).openapi())


async def render_mcp_lists(folder: Path) -> str:
    """Tools, prompts, resources and templates that an MCP client of a new gateway in `folder` is offered."""
    async with serving(_make_settings(folder)) as url, Client(f"{url}/mcp/all") as client:
        tools = (await client.list_tools()).tools
        prompts = (await client.list_prompts()).prompts
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
    lists: dict[str, Sequence[BaseModel]] = {
        "tools": tools, "prompts": prompts, "resources": resources, "templates": templates,
    }  # fmt: skip
    return _to_json(
        {name: [item.model_dump(mode="json", exclude_none=True) for item in items] for name, items in lists.items()}
    )


def render_help() -> str:
    """The help of `stepgate` and of each of its commands."""
    runner = CliRunner()
    environment = {"COLUMNS": str(COLUMNS), "TERMINAL_WIDTH": str(COLUMNS), "TERM": "dumb", "NO_COLOR": "1"}
    pages = []
    for words in _iterate_commands(get_command(commands), ()):
        shown = runner.invoke(commands, [*words, "--help"], env=environment, prog_name="stepgate")
        assert shown.exit_code == 0, (words, shown.output)
        lines = "\n".join(line.rstrip() for line in shown.output.splitlines())
        pages.append(f"$ {' '.join(['stepgate', *words])} --help\n{lines.strip()}\n")
    return "\n".join(pages)


def render_all() -> dict[str, str]:
    """Every surface by the name of its recorded file."""
    with tempfile.TemporaryDirectory() as folder:
        mcp = asyncio.run(render_mcp_lists(Path(folder)))
    return {"openapi.json": render_openapi(), "mcp.json": mcp, "help.txt": render_help()}


def compare(name: str, text: str) -> str:
    """The difference between the recorded surface and `text`, as a unified diff; "" if there is none."""
    recorded = (RECORDED / name).read_text("utf-8").splitlines()
    return "\n".join(difflib.unified_diff(recorded, text.splitlines(), f"recorded {name}", "now", lineterm="", n=2))


def _make_settings(folder: Path) -> Settings:
    return Settings(_env_file=None, data_dir=folder, port=0, skills_dirs=(), drain_seconds=1)


def _to_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _iterate_commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yields the words of `command` and of all below it; Typer's types are not public."""
    loaded = command.load() if isinstance(command, DeferredCommand) else command
    yield words
    for name, below in getattr(loaded, "commands", {}).items():
        yield from _iterate_commands(below, (*words, name))


def main() -> int:
    """Compares or records; the exit code is 1 if something differs."""
    surfaces = render_all()
    if "--record" in sys.argv[1:]:
        RECORDED.mkdir(exist_ok=True)
        for name, text in surfaces.items():
            (RECORDED / name).write_text(text, "utf-8")
        return 0
    differences = [difference for name, text in surfaces.items() if (difference := compare(name, text))]
    print("\n".join(differences) or "no surface has changed")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
