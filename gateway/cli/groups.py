"""What all groups of commands have in common."""

from typing import Any

from typer.core import TyperGroup


class Group(TyperGroup):
    """Commands under one name. The bare name is a question, not a mistake: it prints the help, with exit code 0."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Ask for help when nothing is asked for. (The type of `ctx` is not public.)"""
        return super().parse_args(ctx, args or ["--help"])
