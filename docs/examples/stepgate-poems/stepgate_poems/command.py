"""The command `stepgate poems`."""

import typer


def list_poems() -> None:
    """List your favourite poems."""
    from gateway.cli.session import run_with_gateway  # noqa: PLC0415 - the help of `stepgate` does not need it

    titles = run_with_gateway(lambda stepgate: stepgate.get_part("poems").list_titles("local"))
    typer.echo("\n".join(titles) or "There are no favourite poems.")
