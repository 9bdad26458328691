"""A chat as one Markdown text, for its export."""

from collections.abc import Sequence
from typing import Final, Literal

from agent.core.models import JsonObject

NAMES: Final = {"user": "You", "assistant": "Stepgate"}

ChatText = tuple[Literal["user", "assistant"], str, JsonObject]
"""Who wrote a message, its text, and for an answer its view."""


def format_chat(title: str, messages: Sequence[ChatText]) -> str:
    """The messages in their order; what a person replied to the questions of a run comes before its answer."""
    parts = [f"# {' '.join(title.split()) or 'Chat'}"]
    for role, text, view in messages:
        replies = view.get("replies")
        if isinstance(replies, list):
            parts += [f"## {NAMES['user']}\n\n{reply}" for reply in replies]
        parts.append(f"## {NAMES[role]}\n\n{text.strip() or '(no answer yet)'}")
        sources = view.get("metadata")
        listed = sources.get("sources") if isinstance(sources, dict) else None
        if isinstance(listed, list) and listed:
            named = [source for source in listed if isinstance(source, dict)]
            parts.append("\n".join(f"[{source['id']}]: {source['name']}" for source in named))
    return "\n\n".join(parts) + "\n"
