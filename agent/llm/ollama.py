"""Adds what Ollama says of its models beyond OpenAI's list: their digests, and the context that they run with."""

from collections.abc import Awaitable, Callable
from typing import Any

from agent.llm.listed_models import read_product, read_tags
from agent.llm.replies import get_object, list_objects

Read = Callable[[str], Awaitable[dict[str, Any]]]
"""Requests a path below the server's root; an empty object if there is no answer."""


async def add_ollama_details(listing: dict[str, Any], read: Read) -> None:
    """Adds digest, size and details to the entries of a list of models, and the context of those that are loaded; of
    those that are not, Ollama chooses it when it loads them. Changes nothing if the list is another program's.
    """
    if read_product(listing) != "Ollama":
        return
    tags = read_tags(await read("/api/tags"))
    loaded = read_tags(await read("/api/ps"))
    for entry in list_objects(listing.get("data")):
        name = str(entry.get("id"))
        for key in ("digest", "size", "details"):
            if key in (tag := get_object(tags.get(name))):
                entry.setdefault(key, tag[key])
        context = get_object(loaded.get(name)).get("context_length")
        if isinstance(context, int) and context > 0:
            entry["loaded_context_length"] = context
