"""The commands that `stepgate --help` lists are those that its modules define, and the help imports none of them."""

import subprocess
import sys

import pytest

from gateway.cli import Commands
from gateway.cli.groups import DeferredCommand


@pytest.mark.parametrize("name", Commands.deferred)
def test_the_line_of_the_help_is_how_the_help_of_the_command_begins(name: str) -> None:
    target, line = Commands.deferred[name]
    loaded = DeferredCommand(name, target, line).load()
    assert loaded.help.split("\n\n")[0] == line


def test_the_help_imports_no_command() -> None:
    program = (
        "import sys, gateway.entry; sys.argv = ['stepgate', '--help']\n"
        "try: gateway.entry.main()\n"
        "finally: print(sorted(name for name in sys.modules if name.startswith(('agent', 'gateway.', 'pydantic'))))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "API keys with scopes, limits and budgets." in shown.stdout
    small = (
        "cli",
        "cli.closed_pipes",
        "cli.groups",
        "cli.terminal_output",
        "entry",
        "garbage_collector",
        "quiet_interrupt",
    )
    assert shown.stdout.splitlines()[-1] == str([f"gateway.{name}" for name in small])
