"""Tool names of other systems, as skills written for them use them."""

import re

_FOREIGN = {
    "askuserquestion": ("ask_user",),
    "fetch": ("web_fetch",),
    "glob": ("list_files", "search_files"),  # finding files by name is split between our two
    "grep": ("search_files",),
    "ls": ("list_files",),
    "read": ("read_file",),
    "view": ("read_file",),
    "webfetch": ("web_fetch",),
}
_MCP = re.compile(r"^mcp__(?P<server>[A-Za-z0-9_-]+?)__(?P<tool>[A-Za-z0-9_-]+)$")
_OURS = re.compile(r"^[a-z][a-z0-9_]{0,47}$")


def our_names(declared: str) -> tuple[str, ...]:
    """Our names of a declared tool; empty when there is none. `Read(docs/*)` and the like lose their pattern."""
    name = declared.split("(", 1)[0].strip()
    if (match := _MCP.match(name)) is not None:
        return (f"{match['server']}__{match['tool']}".replace("-", "_").lower(),)
    known = _FOREIGN.get(name.lower())
    if known is not None:
        return known
    return (name,) if _OURS.match(name) else ()
