"""The commands for documents that are understood without a model."""

import re

from agent.tools.commands import MINE, QUERY, CommandCall, CommandExample, ToolCommands

_SEARCH_DOCUMENTS = re.compile(
    rf"(?:search|look)\s+(?:{MINE}(?:documents|collections?)\s+)?for\s+(?:the\s+)?{QUERY}", re.IGNORECASE
)
_LISTING = re.compile(
    r"^\W*(?:please\s+)?(?:(?:can|could) you\s+)?(?:"
    r"(?:what|which)\s+(?:kinds? of\s+)?(?:documents?|collections?|files?)\s+(?:do (?:you|we|i) have|"
    r"are (?:there|here|available|indexed|stored)|can i ask (?:you )?about|(?:do )?you know)"
    r"|(?:list|show(?: me)?)\s+(?:all\s+)?(?:(?:of\s+)?(?:the|my|your|our)\s+)?(?:documents|collections|files))"
    r"(?:\s+(?:here|there|now|in (?:here|total|all)|do you have|you have))?\W*$",
    re.IGNORECASE,
)


def asks_for_listing(question: str) -> bool:
    """Whether a question asks for the list of documents and nothing else."""
    return len(question) <= 200 and _LISTING.match(question) is not None


def _read_listing(command: str) -> list[CommandCall]:
    if not asks_for_listing(command) or "file" in command.lower():
        return []
    return [CommandCall({}, "list the documents")]


def _read_search(command: str) -> list[CommandCall]:
    match = _SEARCH_DOCUMENTS.fullmatch(command)
    if match is None:
        return []
    query = (match["quoted"] or match["query"]).strip()
    return [CommandCall({"query": query}, f"search the documents for {query}")]


DOCUMENT_LISTING = ToolCommands(
    _read_listing,
    place=50,
    example=CommandExample("list your documents", "what documents do you have?", place=20),
    knowledge_example=CommandExample("list them", "what documents do you have?", place=20),
)
DOCUMENT_SEARCH = ToolCommands(
    _read_search,
    place=80,
    example=CommandExample("find passages of your documents", 'search the documents for "warranty"', place=10),
    knowledge_example=CommandExample(
        "answer from your documents, with the passages", "how long is the warranty?", place=10
    ),
)
