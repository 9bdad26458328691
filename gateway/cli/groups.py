"""The base classes of the command groups."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

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
        """Imports the command, and returns it as Typer builds it. (The type is not public.)"""
        module, _, attribute = self._target.partition(":")
        with QuietInterrupt():
            found = getattr(import_module(module if "." in module else f"gateway.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            return get_group(found)
        single = typer.Typer(add_completion=False)
        single.command(self.name)(found)
        return get_command(single)


class LazyGroup(HelpfulGroup):
    """A command group that imports a command when it is called."""

    deferred: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """The commands by name: the module of `gateway.cli` with its function or Typer, and the line of the help."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, (target, line) in self.deferred.items():
            self.add_command(DeferredCommand(name, target, line))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Returns the name, the command and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, DeferredCommand) else command, rest
