"""The command `stepgate poems`."""

import typer

from stepgate_poems.parts import get_poems


def list_poems() -> None:
    """List your favourite poems."""
    from gateway.cli.session import run_with_gateway  # noqa: PLC0415 - the help of `stepgate` does not need it

    titles = run_with_gateway(lambda stepgate: get_poems(stepgate).list_titles("local"))
    typer.echo("\n".join(titles) or "There are no favourite poems.")
