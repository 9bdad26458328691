"""The commands of a room that builds pipelines: "apply NAME" applies the proposal, any other text continues it."""

import re
from typing import Final

from agent.core.models import JsonObject
from agent.tools.commands import QUOTE, CommandCall, ToolCommands

REQUEST_CHARS: Final = 4_000
ANY_LENGTH: Final = 10_000_000
APPLY_CHARS = 500
"""Characters. A longer text is not a command."""
_APPLY = re.compile(
    r"^(?:please )?apply(?: (?:it|this|the pipeline))?(?: (?:to|as|into))?(?: the collection)? "
    r"(?P<name>[\w.\"'-]{1,200})(?P<force> (?:anyway|by force))?[.!]?$",
    re.IGNORECASE,
)
_NO_COLLECTIONS = frozenset({"it", "this", "that", "them", "now", "please", "anyway", "again", "the", "everything"})
"""Words after "apply" that name no collection."""


def _read_application(text: str) -> list[CommandCall]:
    match = _APPLY.match(" ".join(text.split())) if len(text) <= APPLY_CHARS else None
    if match is None or match["name"].rstrip(".").lower() in _NO_COLLECTIONS:
        return []
    args: JsonObject = {"collection_name": match["name"].rstrip(".").strip(QUOTE)}
    if match["force"]:
        args["force"] = True
    return [CommandCall(args, f"apply the pipeline to {args['collection_name']}")]


def _read_continuation(text: str) -> list[CommandCall]:
    if _read_application(text):
        return []
    return [CommandCall({"request": text.strip()[:REQUEST_CHARS]}, "go on building the pipeline")]


PIPELINE_APPLICATION = ToolCommands(_read_application, place=110, longest=ANY_LENGTH, takes_whole=True)
PIPELINE_CONTINUATION = ToolCommands(_read_continuation, place=120, longest=ANY_LENGTH, takes_whole=True)
