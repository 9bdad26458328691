"""The base classes of the command groups."""

from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from gateway.feature import Command
from gateway.feature_loader import import_target, load_features
from gateway.quiet_interrupt import QuietInterrupt


class HelpfulGroup(TyperGroup):
    """A command group whose bare name prints the help, with exit code 0."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Adds `--help` if there are no arguments. (The type of `ctx` is not public.)"""
        return super().parse_args(ctx, args or ["--help"])


class DeferredCommand(TyperCommand):
    """Stands for a command in the help of its group, without the command's module."""

    def __init__(self, name: str, target: str, line: str) -> None:
        super().__init__(name, help=line)
        self._target = target

    def load(self) -> Any:
        """Imports the command, and returns it as Typer builds it. (The type is not public.) Raises `HookError`."""
        with QuietInterrupt():
            loaded = import_target(self._target)
        if isinstance(loaded, typer.Typer):
            return get_group(loaded)
        single = typer.Typer(add_completion=False)
        single.command(self.name)(loaded)
        return get_command(single)


class LazyGroup(HelpfulGroup):
    """A command group that imports a command when it is called: those that features add to a group of this name."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._places = dict.fromkeys(self.commands, 0)
        self._add_deferred(with_installed=False)

    def load_deferred(self, *, with_installed: bool) -> Mapping[str, Command]:
        """The commands by name, without those of installed packages unless `with_installed`."""
        return load_features(with_installed=with_installed).list_commands(str(self.name))

    def list_commands(self, ctx: Any) -> list[str]:
        """The names for the help in order of place, also those of installed packages."""
        self._add_deferred(with_installed=True)
        return super().list_commands(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The name, the command and its arguments."""
        if args and args[0] not in self.commands:
            self._add_deferred(with_installed=True)
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, DeferredCommand) else command, rest

    def _add_deferred(self, *, with_installed: bool) -> None:
        for name, command in self.load_deferred(with_installed=with_installed).items():
            if name not in self.commands:
                self.add_command(DeferredCommand(name, command.target, command.line))
                self._places[name] = command.place
        self.commands = dict(sorted(self.commands.items(), key=lambda item: self._places[item[0]]))
