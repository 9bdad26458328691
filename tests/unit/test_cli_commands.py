"""The commands that `stepgate --help` lists are those that its modules define, and the help imports none of them."""

import subprocess
import sys

import pytest

import gateway.cli
from gateway.cli.groups import DeferredCommand
from gateway.feature_loader import load_features
from gateway.shipped_features import SHIPPED

COMMANDS = {**gateway.cli.COMMANDS, **load_features("", with_installed=False).list_commands()}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_the_help_is_how_the_help_of_the_command_begins(name: str) -> None:
    command = COMMANDS[name]
    loaded = DeferredCommand(name, command.target, command.line).load()
    assert loaded.help.split("\n\n")[0] == command.line


@pytest.mark.long
@pytest.mark.parametrize("module", sorted({command.target.partition(":")[0] for command in COMMANDS.values()}))
def test_a_command_is_loaded_by_itself(module: str) -> None:
    subprocess.run([sys.executable, "-c", f"import gateway.cli, {module}"], check=True)


def test_the_help_imports_no_command() -> None:
    program = (
        "import sys, gateway.entry; sys.argv = ['stepgate', '--help']\n"
        "try: gateway.entry.main()\n"
        "finally: print(sorted(name for name in sys.modules if name.startswith(('agent', 'gateway.', 'pydantic'))))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "API keys with scopes, limits and budgets." in shown.stdout
    small = [
        "cli",
        "cli.closed_pipes",
        "cli.groups",
        "cli.terminal_output",
        "entry",
        "feature",
        "feature_loader",
        "features",
    ]
    small += ["garbage_collector", "quiet_interrupt", "shipped_features"]
    folders = [target.removeprefix("gateway.").partition(":")[0] for target in SHIPPED]
    small += [name for folder in folders for name in (folder, folder.removesuffix(".feature"))]
    assert shown.stdout.splitlines()[-1] == str(sorted(f"gateway.{name}" for name in small))
