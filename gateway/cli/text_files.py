"""`read_text_file`: the text of a file that a command line names."""

import sys
from pathlib import Path

import typer

STDIN = "-"
"""Stands for the input in the place of a file."""


def read_text_file(path: Path, option: str) -> str:
    """The file's text, or what comes from stdin for `-`.

    Raises `typer.BadParameter` naming the option if it cannot be read or is not UTF-8 text.
    """
    try:
        return sys.stdin.read() if str(path) == STDIN else path.expanduser().read_text("utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read: {error.strerror or error}", param_hint=option) from error
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{path} is not UTF-8 text: {error}", param_hint=option) from error
