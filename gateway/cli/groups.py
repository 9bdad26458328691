"""The base class of all command groups."""

from typing import Any

from typer.core import TyperGroup


class HelpfulGroup(TyperGroup):
    """A command group whose bare name prints the help, with exit code 0."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Adds `--help` if there are no arguments. (The type of `ctx` is not public.)"""
        return super().parse_args(ctx, args or ["--help"])
