"""`stepgate studio`: a message to the studio from the terminal. Changes are asked about there."""

from typing import Annotated

import typer

from gateway.cli.ask import ask

STUDIO_ROOM = "studio"


def studio(
    message: Annotated[list[str], typer.Argument(help="What to make, change or find; `-` reads it from stdin.")],
    room: Annotated[str, typer.Option(help="A room with `routing: intents`.")] = STUDIO_ROOM,
    conversation: Annotated[str | None, typer.Option(help="Continue the conversation with this id.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole response as JSON.")] = False,
) -> None:
    """Make and change rooms, tools and prompts in a conversation. Changes wait for your approval."""
    ask(message, room=room, conversation=conversation, as_json=as_json)
