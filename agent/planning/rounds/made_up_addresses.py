"""Addresses in calls that read whose hosts nobody named."""

import re
from urllib.parse import urlsplit

from pydantic import JsonValue

from agent.core.json_walk import iter_leaves
from agent.planning.request import PlanningRequest
from agent.planning.rounds.known_words import list_known_texts

SHORT_NAME_CHARS = 3
"""Up to this length, a name in a host counts as named only by a whole word: nearly every text contains "co"."""
_WEB = re.compile(r"https?://", re.IGNORECASE)


def holds_made_up_address(inputs: JsonValue, request: PlanningRequest) -> bool:
    """Whether one of a call's inputs is the URL of a host that nobody named, not even by a word such as "bbc".

    A small model that finds nothing more to call fetches pages of hosts that it makes up."""
    hosts = [_read_host(leaf) for _, leaf in iter_leaves(inputs) if isinstance(leaf, str)]
    if not any(hosts):
        return False
    text = "\n".join((*list_known_texts(request), request.answer.instructions, request.room.system_prompt)).casefold()
    return any(host and not _is_named(host, text) for host in hosts)


def _read_host(value: str) -> str:
    """The host of a URL; "" for other texts."""
    try:
        return (urlsplit(value).hostname or "") if _WEB.match(value) else ""
    except ValueError:
        return ""


def _is_named(host: str, text: str) -> bool:
    if host.casefold() in text:
        return True
    names = [label.replace("-", " ") for label in host.casefold().split(".")[:-1] if label != "www" and len(label) > 1]
    return any(_is_word(name, text) if len(name) <= SHORT_NAME_CHARS else name in text for name in names)


def _is_word(name: str, text: str) -> bool:
    return re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", text) is not None
